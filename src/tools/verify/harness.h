// SPDX-License-Identifier: Apache-2.0
// What the checks use of the outside: models, a clock, memory, another process. A test overrides a
// function to inject a fault and sees that a check finds it. The program itself cannot.
#pragma once

#include <cstdint>
#include <string>

#include "toto/tools/verify.hpp"

namespace toto::verify {

/// A way of running the checkpoint.
struct Variant {
  Mode mode = Mode::eager;
  Precision precision = Precision::float32;
  [[nodiscard]] std::string label() const;  // "reduce-overhead float32"
  bool operator==(const Variant&) const = default;
};

class Harness {
 public:
  explicit Harness(const VerifyOptions& options) : options_(options) {}
  virtual ~Harness() = default;
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  /// `threads` 0: as the options say. float64 runs on the reference backend with nothing folded,
  /// whatever they say.
  [[nodiscard]] virtual Model load(const Variant& variant, int threads) const;
  /// Called before each forecast of the stability checks.
  virtual void before_forecast(Forecaster& /*forecaster*/) const {}
  /// Seconds since any fixed moment.
  [[nodiscard]] virtual double now() const;
  /// Seconds of all cores that anybody has used, this process excluded; 0 where the system does not
  /// say.
  [[nodiscard]] virtual double used_by_others() const;
  /// Seconds of all cores that this process has used.
  [[nodiscard]] virtual double processor_seconds() const;
  /// Bytes of this process in memory, after handing back what is free.
  [[nodiscard]] virtual std::uint64_t resident() const;
  /// Throws where the options have no such function.
  [[nodiscard]] virtual std::uint64_t allocations() const;
  [[nodiscard]] virtual std::string second_process() const;

 protected:
  const VerifyOptions& options_;
};

}  // namespace toto::verify
