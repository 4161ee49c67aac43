// Normalisation of rows by its definition; the backward pass by the full Jacobian.
#pragma once

#include <cmath>
#include <vector>

#include "nunchi/kernels/norm.h"
#include "tests/reference/dropout.h"

namespace nunchi::reference {

struct Norm {
  std::vector<double> sum, out, mean, rstd;  // of the rows up to the count
};

template <class T>
Norm residual_norm(const kernels::ResidualNorm<T>& p) {
  Norm result;
  for (std::int64_t r = 0; r < row_count(p.rows); ++r) {
    std::vector<double> x;
    for (std::int64_t i = 0; i < p.width; ++i) {
      const double branch =
          p.branch != nullptr ? p.branch[r * p.width + i] * dropout_factor(p.dropout, p.rows, r, i)
                              : 0.0;
      x.push_back(p.residual[r * p.width + i] + branch);
    }
    double mean = 0, variance = 0;
    if (p.kind == kernels::NormKind::layer) {
      for (const double v : x) mean += v / static_cast<double>(p.width);
    }
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(p.width);
    const double rstd = 1 / std::sqrt(variance + p.epsilon);
    for (std::int64_t i = 0; i < p.width; ++i) {
      result.out.push_back((x[i] - mean) * rstd * p.gamma[i] +
                           (p.beta != nullptr ? p.beta[i] : 0.0));
    }
    result.sum.insert(result.sum.end(), x.begin(), x.end());
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
  }
  return result;
}

struct NormGradients {
  std::vector<double> d_residual, d_branch;  // of the rows up to the count
  std::vector<double> d_gamma, d_beta;
};

// With n = (x - mean) * rstd: d n[i] / d x[j] = rstd * ((i == j) - 1 / C - n[i] n[j] / C). rms has
// no mean, so the term 1 / C is missing.
template <class T>
NormGradients residual_norm_backward(const kernels::ResidualNormBackward<T>& p) {
  const auto width = static_cast<double>(p.width);
  NormGradients d;
  for (std::int64_t i = 0; i < p.width; ++i) {
    d.d_gamma.push_back(p.d_gamma[i]);
    d.d_beta.push_back(p.d_beta != nullptr ? p.d_beta[i] : 0.0);
  }
  for (std::int64_t r = 0; r < row_count(p.rows); ++r) {
    const std::int64_t offset = r * p.width;
    std::vector<double> n;
    for (std::int64_t i = 0; i < p.width; ++i) {
      n.push_back((static_cast<double>(p.sum[offset + i]) - p.mean[r]) * p.rstd[r]);
      d.d_gamma[i] += p.d_out[offset + i] * n[i];
      d.d_beta[i] += p.d_out[offset + i];
    }
    for (std::int64_t j = 0; j < p.width; ++j) {
      double d_x = p.d_sum != nullptr ? p.d_sum[offset + j] : 0.0;
      for (std::int64_t i = 0; i < p.width; ++i) {
        const double mean_term = p.kind == kernels::NormKind::layer ? 1 / width : 0;
        const double derivative = p.rstd[r] * ((i == j) - mean_term - n[i] * n[j] / width);
        d_x += static_cast<double>(p.d_out[offset + i]) * p.gamma[i] * derivative;
      }
      d.d_branch.push_back(d_x * dropout_factor(p.dropout, p.rows, r, j));
      d.d_residual.push_back(d_x + (p.accumulate_residual ? p.d_residual[offset + j] : 0.0));
    }
  }
  return d;
}

}  // namespace nunchi::reference
