#include "nunchi/kernels/additive_attention.h"

#include <algorithm>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/sigmoid.h"

namespace nunchi::kernels {
namespace {

// One sentence's queries and keys.
template <class T>
struct Sentence {
  Sentence(const AdditiveInputs<T>& in, std::int64_t b)
      : first_query(in.q_offsets != nullptr ? in.q_offsets[b] : b),
        queries(in.q_offsets != nullptr ? in.q_offsets[b + 1] - first_query : 1),
        first_key(in.k_begin[b]),
        keys(in.k_length[b]),
        weight_offset(in.weight_offsets != nullptr ? in.weight_offsets[b] : b * in.max_keys) {}
  std::int64_t first_query, queries, first_key, keys;
  std::int64_t weight_offset;  // of the sentence's weights
};

template <class T>
[[gnu::always_inline]] inline void add_row(T factor, const T* x, T* out, std::int64_t width) {
  for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
    store<V>(out + i, load<V>(out + i) + factor * load<V>(x + i));
  });
}

// scores[0:count] become weights that sum to one.
template <class T>
void softmax(T* scores, std::int64_t count) {
  const T max_score = *std::max_element(scores, scores + count);
  T total = 0;
  for (std::int64_t j = 0; j < count; ++j)
    total += scores[j] = exponential<T>(scores[j] - max_score);
  for (std::int64_t j = 0; j < count; ++j) scores[j] /= total;
}

// The backward pass of one sentence. `d_scores` is scratch memory with one element per key;
// `d_score_vector` gets the sentence's partial sum.
template <class T>
class SentenceBackward {
 public:
  SentenceBackward(const AdditiveAttentionBackward<T>& p, std::int64_t b, T* d_scores,
                   T* d_score_vector)
      : p_(p), in_(p.in), s_(in_, b), d_scores_(d_scores), d_score_vector_(d_score_vector) {}

  void run() {
    std::fill_n(d_score_vector_, in_.width, T(0));
    for (std::int64_t j = 0; j < s_.keys; ++j) {
      if (!p_.accumulate_k) std::fill_n(d_k(j), in_.width, T(0));
      if (!p_.accumulate_v) std::fill_n(d_v(j), in_.value_width, T(0));
    }
    for (std::int64_t i = 0; i < s_.queries; ++i) {
      const std::int64_t row = s_.first_query + i;
      T* d_q = p_.d_q + row * p_.d_q_stride;
      if (!p_.accumulate_q) std::fill_n(d_q, in_.width, T(0));
      value_gradients(i, p_.d_out + row * p_.d_out_stride);
      for (std::int64_t j = 0; j < s_.keys; ++j) pair_gradients(j, in_.q + row * in_.q_stride, d_q);
    }
  }

 private:
  T* d_k(std::int64_t j) const { return p_.d_k + (s_.first_key + j) * p_.d_k_stride; }
  T* d_v(std::int64_t j) const { return p_.d_v + (s_.first_key + j) * p_.d_v_stride; }

  // The gradients of the values and of the scores of query i.
  void value_gradients(std::int64_t i, const T* d_out) {
    const T* weights = p_.weights + s_.weight_offset + i * s_.keys;
    T mean = 0;
    for (std::int64_t j = 0; j < s_.keys; ++j) {
      const T* v = in_.v + (s_.first_key + j) * in_.v_stride;
      RowSum<T> sum;
      for_each_vector<T>(in_.value_width, [&]<class V>(std::int64_t c, V) {
        sum.add(load<V>(d_out + c) * load<V>(v + c));
      });
      d_scores_[j] = sum.total();
      mean += weights[j] * d_scores_[j];
      add_row(weights[j], d_out, d_v(j), in_.value_width);
    }
    for (std::int64_t j = 0; j < s_.keys; ++j) d_scores_[j] = weights[j] * (d_scores_[j] - mean);
  }

  void pair_gradients(std::int64_t j, const T* q, T* d_q) {
    const T* k = in_.k + (s_.first_key + j) * in_.k_stride;
    T* d_key = d_k(j);
    const T d = d_scores_[j];
    for_each_vector<T>(in_.width, [&]<class V>(std::int64_t a, V) {
      const V t = hyperbolic_tangent<V>(load<V>(q + a) + load<V>(k + a));
      const V d_sum = d * load<V>(in_.score_vector + a) * (T(1) - t * t);
      store<V>(d_score_vector_ + a, load<V>(d_score_vector_ + a) + d * t);
      store<V>(d_q + a, load<V>(d_q + a) + d_sum);
      store<V>(d_key + a, load<V>(d_key + a) + d_sum);
    });
  }

  const AdditiveAttentionBackward<T>& p_;
  const AdditiveInputs<T>& in_;
  const Sentence<T> s_;
  T* d_scores_;
  T* d_score_vector_;
};

// About how long one thread takes for a sentence, forward: a tanh for each query, key and column.
template <class T>
double sentence_nanoseconds(const AdditiveInputs<T>& in) {
  return static_cast<double>(in.max_queries * in.max_keys * in.width);
}

template <class T>
void clear_rows(const Rows& rows, std::int64_t width, T* out, std::int64_t stride) {
  for (std::int64_t r = count_of(rows); r < rows.capacity; ++r) {
    std::fill_n(out + r * stride, width, T(0));
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AdditiveAttention<T>& p) {
  const AdditiveInputs<T>& in = p.in;
  const ScratchMemory memory(ctx.arena(),
                             static_cast<std::size_t>(in.max_keys * ctx.threads()) * sizeof(T));
  parallel_tasks(ctx, in.sentences, sentence_nanoseconds(in), [&](std::int64_t b, int thread) {
    const Sentence<T> s(in, b);
    for (std::int64_t i = 0; i < s.queries; ++i) {
      const std::int64_t row = s.first_query + i;
      const T* q = in.q + row * in.q_stride;
      T* weights = p.weights != nullptr ? p.weights + s.weight_offset + i * s.keys
                                        : memory.as<T>() + thread * in.max_keys;
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const T* k = in.k + (s.first_key + j) * in.k_stride;
        RowSum<T> score;
        for_each_vector<T>(in.width, [&]<class V>(std::int64_t a, V) {
          score.add(load<V>(in.score_vector + a) *
                    hyperbolic_tangent<V>(load<V>(q + a) + load<V>(k + a)));
        });
        weights[j] = score.total();
      }
      T* out = p.out + row * p.out_stride;
      std::fill_n(out, in.value_width, T(0));
      if (s.keys == 0) continue;
      softmax(weights, s.keys);
      for (std::int64_t j = 0; j < s.keys; ++j) {
        add_row(weights[j], in.v + (s.first_key + j) * in.v_stride, out, in.value_width);
      }
    }
  });
  for (std::int64_t row = count_of(p.rows); row < p.rows.capacity; ++row) {
    std::fill_n(p.out + row * p.out_stride, in.value_width, T(0));
  }
}
template void compute<Cpu<kIsa>>(CpuContext&, const AdditiveAttention<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AdditiveAttentionBackward<T>& p) {
  const AdditiveInputs<T>& in = p.in;
  const ScratchMemory scores(ctx.arena(),
                             static_cast<std::size_t>(in.max_keys * ctx.threads()) * sizeof(T));
  // One partial sum of the score_vector's gradient per sentence. They are added in sentence order,
  // independent of the threads that computed them.
  const ScratchMemory d_score_vectors(
      ctx.arena(), static_cast<std::size_t>(in.sentences * in.width) * sizeof(T));
  parallel_tasks(ctx, in.sentences, 3 * sentence_nanoseconds(in), [&](std::int64_t b, int thread) {
    SentenceBackward<T>(p, b, scores.as<T>() + thread * in.max_keys,
                        d_score_vectors.as<T>() + b * in.width)
        .run();
  });
  for (std::int64_t b = 0; b < in.sentences; ++b) {
    add_row(T(1), d_score_vectors.as<T>() + b * in.width, p.d_score_vector, in.width);
  }
  if (!p.accumulate_q) clear_rows(p.rows, in.width, p.d_q, p.d_q_stride);
  if (!p.accumulate_k) clear_rows(p.key_rows, in.width, p.d_k, p.d_k_stride);
  if (!p.accumulate_v) clear_rows(p.key_rows, in.value_width, p.d_v, p.d_v_stride);
}
template void compute<Cpu<kIsa>>(CpuContext&, const AdditiveAttentionBackward<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const AdditiveAttention<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const AdditiveAttentionBackward<double>&);
#endif

}  // namespace nunchi::kernels
