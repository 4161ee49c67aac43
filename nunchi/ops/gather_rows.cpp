#include "nunchi/ops/gather_rows.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/decode/decode_attention.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

Variable gather_rows(const Variable& from, const Ragged& rows, const Tensor& index) {
  const Tensor& x = from.value();
  check(x.shape().dimensions() == 2, "gather_rows",
        "rows must come from a matrix, not from shape " + x.shape().to_string());
  check(index.size(0) >= rows.rows, "gather_rows",
        std::to_string(index.size(0)) + " indices were given for " + std::to_string(rows.rows) +
            " rows");
  return record("gather_rows", gather_rows(x, rows, index), {from},
                [shape = x.shape(), rows, index](Gradients& gradients) {
                  const Tensor& d_out = gradients.output();
                  const Tensor d_from = zeros(d_out.context(), d_out.dtype(), shape);
                  scatter_rows(d_out, rows, index, d_from);
                  gradients.add(0, d_from);
                });
}

}  // namespace nunchi
