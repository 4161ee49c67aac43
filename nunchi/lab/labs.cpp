// The list of labs; a new one adds one line.
#include "nunchi/base/error.h"
#include "nunchi/base/nearest.h"
#include "nunchi/base/printable.h"
#include "nunchi/lab/bottleneck.h"
#include "nunchi/lab/cat.h"
#include "nunchi/lab/collisions.h"
#include "nunchi/lab/coreference.h"
#include "nunchi/lab/heads.h"
#include "nunchi/lab/lab.h"
#include "nunchi/lab/learning.h"
#include "nunchi/lab/length.h"
#include "nunchi/lab/mask.h"
#include "nunchi/lab/memory.h"
#include "nunchi/lab/order.h"
#include "nunchi/lab/places.h"
#include "nunchi/lab/positions.h"
#include "nunchi/lab/residual.h"
#include "nunchi/lab/scale.h"
#include "nunchi/lab/scaling.h"
#include "nunchi/lab/search.h"
#include "nunchi/lab/teacher_forcing.h"
#include "nunchi/lab/worked.h"

namespace nunchi::lab {

const std::vector<Lab>& labs() {
  static const std::vector<Lab> all = {
      // Computed at once.
      worked_lab(),
      scaling_lab(),
      positions_lab(),
      collisions_lab(),
      memory_lab(),
      // Trained on generated tasks.
      order_lab(),
      mask_lab(),
      heads_lab(),
      coreference_lab(),
      cat_lab(),
      bottleneck_lab(),
      teacher_forcing_lab(),
      residual_lab(),
      length_lab(),
      places_lab(),
      search_lab(),
      scale_lab(),
      learning_lab(),
  };
  return all;
}

const Lab& find_lab(std::string_view name) {
  std::vector<std::string> names;
  for (const Lab& lab : labs()) {
    if (lab.name == name) return lab;
    names.emplace_back(lab.name);
  }
  const std::string similar = nearest(name, names);
  throw UsageError("there is no lab '" + printable(std::string(name)) + "'" +
                   (similar.empty() ? "" : "; did you mean '" + similar + "'?") +
                   (similar.empty() ? "; see '" : " See '") + "nunchi lab'.");
}

}  // namespace nunchi::lab
