// SPDX-License-Identifier: Apache-2.0
#include "engine/autotune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/log.h"

namespace toto {
namespace {

constexpr std::int32_t kRows[] = {64, 384};  // a few, and many: their times are added
constexpr int kRounds = 5;

/// A matrix in memory of a backend for a while.
class Lease {
 public:
  Lease(Backend& backend, std::int32_t rows, std::int32_t width)
      : backend_(backend),
        view_{backend.allocate(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width) *
                               backend.element_size()),
              backend.element_type(), width, rows} {}
  ~Lease() { backend_.release(view_.data); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  [[nodiscard]] const View& get() const { return view_; }

 private:
  Backend& backend_;
  View view_;
};

class Trial {
 public:
  Trial(Backend& backend, const Matrix& matrix, Epilogue epilogue)
      : backend_(backend),
        matrix_(matrix),
        epilogue_(epilogue),
        width_(epilogue == Epilogue::gated ? matrix.out / 2 : matrix.out),
        x_(backend, kRows[1], matrix.in),
        y_(backend, kRows[1], width_),
        first_(backend, kRows[1], width_) {
    std::vector<double> x(static_cast<std::size_t>(kRows[1]) * static_cast<std::size_t>(matrix.in));
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<double>(i * 2654435761U % 1999) / 1000 - 1;
    backend.upload(std::span<const double>(x), x_.get());
    run(first_.get(), kRows[1]);  // candidate 0
  }

  /// Whether the candidate that is chosen now gives the bits of candidate 0.
  bool same_bits() {
    run(y_.get(), kRows[1]);
    const auto bytes = static_cast<std::size_t>(y_.get().bytes());
    return std::memcmp(y_.get().data, first_.get().data, bytes) == 0;
  }

  std::uint64_t nanoseconds() {
    std::uint64_t sum = 0;
    for (const std::int32_t rows : kRows) {
      std::uint64_t best = ~std::uint64_t{0};
      for (int i = 0; i < kRounds; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run(y_.get(), rows);
        const auto time = std::chrono::steady_clock::now() - start;
        best = std::min<std::uint64_t>(
            best, static_cast<std::uint64_t>(
                      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()));
      }
      sum += best;
    }
    return sum;
  }

 private:
  void run(const View& y, std::int32_t rows) {
    // A residual would add up from run to run: the product itself is what is compared.
    const Epilogue how = epilogue_ == Epilogue::gated ? Epilogue::gated : Epilogue::store;
    backend_.linear(matrix_, x_.get().shaped(rows, matrix_.in), y, how);
  }

  Backend& backend_;
  Matrix matrix_;
  Epilogue epilogue_;
  std::int32_t width_;
  Lease x_, y_, first_;
};

KernelChoice measure(Backend& backend, const Matrix& matrix, Epilogue epilogue,
                     const LogSink& log) {
  KernelChoice choice{static_cast<std::uint32_t>(matrix.out), static_cast<std::uint32_t>(matrix.in),
                      product_tag(epilogue, backend), 0, 0};
  Trial trial(backend, matrix, epilogue);
  for (int candidate = 0; candidate < backend.product_candidates(); ++candidate) {
    backend.choose_product(matrix, candidate);
    if (!trial.same_bits()) {
      log_info(log, Topic::plans, "kernel_refused",
               fmt::format("autotune: candidate {} of {}x{} {} changes bits: refused", candidate,
                           matrix.out, matrix.in, choice.tag));
      continue;
    }
    const std::uint64_t time = trial.nanoseconds();
    if (candidate == 0 || time < choice.nanoseconds) {
      choice.candidate = static_cast<std::uint32_t>(candidate);
      choice.nanoseconds = time;
    }
  }
  log_info(log, Topic::plans, "kernel_chosen",
           fmt::format("autotune: {}x{} {}: candidate {}, {} us", matrix.out, matrix.in, choice.tag,
                       choice.candidate, choice.nanoseconds / 1000));
  return choice;
}

}  // namespace

std::string product_tag(Epilogue epilogue, const Backend& backend) {
  const char* use = epilogue == Epilogue::gated      ? "gated"
                    : epilogue == Epilogue::residual ? "residual"
                                                     : "store";
  const double size = backend.weight_size();
  return fmt::format("{} {}", use, size < 2 ? "int8" : size < 4 ? "bf16" : "f32");
}

std::vector<KernelChoice> autotune(const Network& net, std::vector<KernelChoice> known,
                                   const LogSink& log, std::uint64_t& measured) {
  Backend& backend = net.backend();
  const auto candidates = static_cast<std::uint32_t>(backend.product_candidates());
  if (candidates < 2) return known;  // nothing to choose
  net.for_each_matrix([&](const Matrix& matrix, Epilogue epilogue) {
    const std::string tag = product_tag(epilogue, backend);
    const auto fits = [&](const KernelChoice& c) {
      return c.n == static_cast<std::uint32_t>(matrix.out) &&
             c.k == static_cast<std::uint32_t>(matrix.in) && c.tag == tag &&
             c.candidate < candidates;
    };
    auto at = std::find_if(known.begin(), known.end(), fits);
    if (at == known.end()) {
      known.push_back(measure(backend, matrix, epilogue, log));
      ++measured;
      at = std::prev(known.end());
    }
    backend.choose_product(matrix, static_cast<int>(at->candidate));
  });
  return known;
}

}  // namespace toto
