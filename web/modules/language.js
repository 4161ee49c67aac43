// The two languages of the page.
import {english} from "./strings_en.js";
import {korean} from "./strings_ko.js";

const languages = {
  en: english,
  ko: korean
};
let current = "en";

export function setLanguage(language) {
  current = languages[language] ? language : "en";
  document.documentElement.lang = current;
}

export function language() {
  return current;
}

export function browserLanguage() {
  const preferred = navigator.languages || [navigator.language || "en"];
  const known = preferred.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => languages[tag]);
  return known || "en";
}

// Whether the Korean reading of a text ends in a consonant. Digits are read as Korean numbers.
function endsInConsonant(text) {
  const letters = text.match(/[\p{L}\p{N}]/gu) || [];
  const last = letters.length ? letters[letters.length - 1] : "";
  if (/[가-힣]/.test(last)) return (last.codePointAt(0) - 0xac00) % 28 !== 0;
  if (/[0-9]/.test(last)) return "013678".includes(last);
  return /[lmnr]/i.test(last);
}

// The sentence with {name} replaced; "[과/와]" becomes the particle after a consonant or a vowel.
export function t(key, values = {}) {
  const text = languages[current][key] ?? english[key] ?? key;
  const parts = text.split(/\[([가-힣]+)\/([가-힣]+)\]/);
  const filled = (part) =>
      part.replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all));
  let result = filled(parts[0]);
  for (let i = 1; i < parts.length; i += 3) {
    result +=
        (endsInConsonant(result.normalize("NFC")) ? parts[i] : parts[i + 1]) + filled(parts[i + 2]);
  }
  return result;
}

export function hasText(key) {
  return key in languages[current];
}
