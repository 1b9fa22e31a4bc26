// SPDX-License-Identifier: Apache-2.0
// What operations of the seam say, on every backend, where they are handed memory of another type
// or size than they take.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/runtime/cuda_backend.h"
#include "backend/ops2.h"
#include "backend/path_ops.h"
#include "toto/error.hpp"

namespace toto {
namespace {

std::unique_ptr<Backend> make(std::string_view name) {
  if (name == "cpu") return make_cpu_backend({2, CpuWeights::f32, ""});
  if (name == "float64") return make_reference_backend_f64();
  if (name == "reference") return make_reference_backend_f32();
  return make_cuda_backend({name == "cuda_bf16" ? CudaWeights::bf16 : CudaWeights::f32, 1});
}

class SeamViews : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = cuda_unavailable();
        std::string_view(GetParam()).starts_with("cuda") && !why.empty()) {
      GTEST_SKIP() << why;
    }
    backend_ = make(GetParam());
    block_.variates = kVariates;
    block_.tokens = block_.suffix_capacity = kTokens;
    block_.context = kTokens;
    batch_ = {&block_, ids_.data(), 1, kRows, kVariates};
    slice_.variates = slice_.targets = kVariates;
    slice_.tokens = slice_.patches = slice_.slots = slice_.context = kTokens;
    call_.slices = &slice_;
    call_.count = 1;
    call_.rows = kRows;
    call_.lanes = kVariates;
    call_.keys = kTokens;
  }
  void TearDown() override {
    for (void* memory : memory_) backend_->release(memory);
  }

  [[nodiscard]] Backend& be() { return *backend_; }
  [[nodiscard]] View made(ElementType type, std::int32_t rows, std::int32_t width) {
    memory_.push_back(backend_->allocate(4096));
    return {memory_.back(), type, width, rows};
  }
  /// Activations.
  [[nodiscard]] View some(std::int32_t rows, std::int32_t width) {
    return made(backend_->element_type(), rows, width);
  }
  /// Of another type.
  [[nodiscard]] View other(std::int32_t rows, std::int32_t width) {
    const bool wide = backend_->element_type() == ElementType::f64;
    return made(wide ? ElementType::f32 : ElementType::f64, rows, width);
  }
  [[nodiscard]] Matrix matrix(std::int32_t out, std::int32_t in, Epilogue use) {
    return backend_->upload_matrix(
        std::make_unique<float[]>(static_cast<std::size_t>(out) * static_cast<std::size_t>(in)),
        out, in, {}, use);
  }

  /// `run` with `good` in the place of an operand is right; with another type, or other sizes, it
  /// is refused by the name of that operand.
  void takes(const std::string& name, const View& good, const std::function<void(View)>& run) {
    refuses("view_type", name, run, made(type_unlike(good), good.rows.count, good.width));
    refuses("view_size", name, run, made(good.type, good.rows.count, good.width + 1));
    if (good.rows.count > 1) {
      refuses("view_size", name, run, made(good.type, good.rows.count - 1, good.width));
    }
  }
  static ElementType type_unlike(const View& v) {
    return v.type == ElementType::f64 ? ElementType::f32 : ElementType::f64;
  }
  static void refuses(const std::string& code, const std::string& name,
                      const std::function<void(View)>& run, const View& wrong) {
    try {
      run(wrong);
      ADD_FAILURE() << name << " is taken, though " << code << " is expected";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << name;
      EXPECT_EQ(e.status(), ExitStatus::internal) << name;
      EXPECT_TRUE(e.message().starts_with(name + ": expected ")) << e.message();
    }
  }

  static constexpr std::int32_t kVariates = 2, kTokens = 3, kRows = kVariates * kTokens;
  static constexpr std::int32_t kHeads = 2, kDim = 8, kPatch = 4, kComponents = 2;
  static constexpr std::int32_t kWidth = kHeads * kDim;
  Block block_;
  std::vector<std::int32_t> ids_ = std::vector<std::int32_t>(kRows, 0);
  Batch batch_;
  CallSlice slice_;
  Call call_;

 private:
  std::unique_ptr<Backend> backend_;
  std::vector<void*> memory_;
};

TEST_P(SeamViews, Memory) {
  const std::vector<float> narrow(6, 1.0F);
  std::vector<double> wide(6, 1.0);
  const auto each = [&](const char* name, const std::function<void(View)>& run) {
    refuses("view_type", name, run, other(2, 3));
    refuses("view_size", name, run, some(1, 5));
  };
  each("upload: to", [&](View v) { be().upload(std::span<const float>(narrow), v); });
  each("upload: to", [&](View v) { be().upload(std::span<const double>(wide), v); });
  each("download: from", [&](View v) { be().download(v, wide); });
  const View two = some(2, 3);
  be().upload(std::span<const float>(narrow), two);
  be().download(two, wide);
  EXPECT_EQ(wide, std::vector<double>(6, 1.0));
}

TEST_P(SeamViews, Products) {
  for (const Epilogue use : {Epilogue::store, Epilogue::residual, Epilogue::gated}) {
    const Matrix w = matrix(16, kWidth, use);
    const ElementType operands = be().operand_type(w);
    const bool gated = use == Epilogue::gated;
    const View x = made(operands, 3, kWidth);
    const View y = made(gated ? operands : be().element_type(), 3, gated ? 8 : 16);
    be().linear(w, x, y, use);
    takes("linear: y", y, [&](View v) { be().linear(w, x, v, use); });
    refuses(
        "view_type", "linear: x", [&](View v) { be().linear(w, v, y, use); },
        made(type_unlike(x), 3, kWidth));
    refuses(
        "view_size", "linear: x", [&](View v) { be().linear(w, v, y, use); },
        made(operands, 3, kWidth + 1));
    refuses(
        "view_size", "linear: y", [&](View v) { be().linear(w, v, y, use); },
        made(operands, 4, kWidth));  // more rows than y has
  }
}

TEST_P(SeamViews, Norms) {
  const View x = some(3, kWidth), gain = some(1, kWidth), y = some(3, kWidth);
  be().rms_norm(x, gain, y);
  takes("rms_norm: gain", gain, [&](View v) { be().rms_norm(x, v, y); });
  takes("rms_norm: y", y, [&](View v) { be().rms_norm(x, gain, v); });
  refuses(
      "view_type", "rms_norm: x", [&](View v) { be().rms_norm(v, gain, y); }, other(3, kWidth));
  const Ops2& ops = *be().ops2();
  ops.rms_norm(x, y, 1e-6);
  takes("rms_norm: y", y, [&](View v) { ops.rms_norm(x, v, 1e-6); });
  refuses(
      "view_type", "rms_norm: x", [&](View v) { ops.rms_norm(v, y, 1e-6); }, other(3, kWidth));
}

TEST_P(SeamViews, LinearSilu) {
  const Ops2& ops = *be().ops2();
  const Matrix w = matrix(16, kWidth, Epilogue::store);
  const View x = made(be().operand_type(w), 3, kWidth), y = made(be().operand_type(w), 3, 16);
  ops.linear_silu(w, x, y);
  takes("linear_silu: y", y, [&](View v) { ops.linear_silu(w, x, v); });
  refuses(
      "view_type", "linear_silu: x", [&](View v) { ops.linear_silu(w, v, y); },
      made(type_unlike(x), 3, kWidth));
  refuses(
      "view_size", "linear_silu: x", [&](View v) { ops.linear_silu(w, v, y); },
      made(x.type, 3, kWidth - 1));
}

TEST_P(SeamViews, Scaler) {
  ScalerSpec spec;
  spec.patch = kPatch;
  const View x = some(kRows, kPatch);
  const ScalerOutputs to{some(kRows, kPatch), some(kRows, kPatch), some(kRows, kPatch),
                         some(kVariates, kPatch), some(kVariates, kPatch)};
  takes("scale: x", x, [&](View v) { be().scale(batch_, spec, v, nullptr, nullptr, to); });
  const auto output = [&](const char* name, View ScalerOutputs::*which) {
    takes(name, to.*which, [&](View v) {
      ScalerOutputs changed = to;
      changed.*which = v;
      be().scale(batch_, spec, x, nullptr, nullptr, changed);
    });
  };
  output("scale: values", &ScalerOutputs::values);
  output("scale: loc", &ScalerOutputs::loc);
  output("scale: scale", &ScalerOutputs::scale);
  output("scale: last loc", &ScalerOutputs::last_loc);
  output("scale: last scale", &ScalerOutputs::last_scale);
}

TEST_P(SeamViews, AttentionOfToto1) {
  const View qkv = some(kRows, 3 * kWidth), out = some(kRows, kWidth);
  const View keys = some(32, kDim), values = some(32, kDim);
  const View table = some(kTokens, kDim / 2), factor = some(2 * kTokens, kDim / 2);
  const Rotary rotary{table, table, factor, kTokens};
  const KvLayer kv{keys, values};
  const auto rotate = [&](const Rotary& r, const View& q, const KvLayer& k) {
    be().rotary_append(batch_, r, q, k, kHeads);
  };
  refuses(
      "view_type", "rotary_append: qkv", [&](View v) { rotate(rotary, v, kv); },
      other(kRows, 3 * kWidth));
  refuses(
      "view_size", "rotary_append: qkv", [&](View v) { rotate(rotary, v, kv); },
      some(kRows - 1, 3 * kWidth));
  takes("rotary_append: cosine", table, [&](View v) {
    rotate({v, table, factor, kTokens}, qkv, kv);
  });
  takes("rotary_append: sine", table, [&](View v) {
    rotate({table, v, factor, kTokens}, qkv, kv);
  });
  takes("rotary_append: factor", factor, [&](View v) {
    rotate({table, table, v, kTokens}, qkv, kv);
  });
  refuses(
      "view_size", "attention: keys",
      [&](View v) {
        rotate(rotary, qkv, {v, values});
      },
      some(32, kDim + 1));
  refuses(
      "view_type", "attention: values",
      [&](View v) {
        rotate(rotary, qkv, {keys, v});
      },
      other(32, kDim));

  const auto attend = [&](const View& q, const KvLayer& k, const View& o, bool last) {
    be().time_attention(batch_, q, k, o, kHeads, last);
  };
  takes("attention: qkv", qkv, [&](View v) { attend(v, kv, out, false); });
  takes("attention: qkv", qkv, [&](View v) { be().variate_attention(batch_, v, out, kHeads); });
  for (const bool last : {false, true}) {
    const std::int32_t rows = last ? kVariates : kRows;
    refuses(
        "view_type", "attention: out", [&](View v) { attend(qkv, kv, v, last); },
        other(rows, kWidth));
    refuses(
        "view_size", "attention: out", [&](View v) { attend(qkv, kv, v, last); },
        some(rows - 1, kWidth));
  }
  refuses(
      "view_size", "attention: keys",
      [&](View v) {
        attend(qkv, {v, values}, out, false);
      },
      some(32, kDim + 1));
  refuses(
      "view_type", "attention: out",
      [&](View v) { be().variate_attention(batch_, qkv, v, kHeads); }, other(kRows, kWidth));
}

TEST_P(SeamViews, RowsThatMove) {
  const View labels = some(2, kWidth), hidden = some(kRows, kWidth), last = some(kVariates, kWidth);
  takes("set_labels: labels", labels, [&](View v) { be().set_labels(batch_, v, hidden); });
  refuses(
      "view_type", "set_labels: hidden", [&](View v) { be().set_labels(batch_, labels, v); },
      other(kRows, kWidth));
  refuses(
      "view_size", "set_labels: hidden", [&](View v) { be().set_labels(batch_, labels, v); },
      some(kRows - 1, kWidth));
  takes("gather_last: y", last, [&](View v) { be().gather_last(batch_, hidden, v); });
  refuses(
      "view_size", "gather_last: x", [&](View v) { be().gather_last(batch_, v, last); },
      some(kRows - 1, kWidth));
  takes("gather: y", hidden, [&](View v) { be().ops2()->gather(call_, call_, hidden, v); });
  refuses(
      "view_type", "gather: x", [&](View v) { be().ops2()->gather(call_, call_, v, hidden); },
      other(kRows, kWidth));
}

TEST_P(SeamViews, HeadAndStatistics) {
  const PatchShape shape{kPatch, kComponents, 3};
  const View params = some(kVariates, 3 * 4 * kComponents), loc = some(kVariates, kPatch);
  const View scale = some(kVariates, kPatch), y = some(kVariates, kPatch);
  refuses(
      "view_type", "distribution: raw", [&](View v) { be().distribution(v, true); },
      other(kRows, 4 * kComponents));
  refuses(
      "view_size", "distribution: raw", [&](View v) { be().distribution(v, true); },
      some(kRows, 4 * kComponents + 1));
  using Three = std::function<void(const View&, const View&, const View&)>;
  const auto three = [&](const Three& run) {
    takes("parameters", params, [&](View v) { run(v, loc, scale); });
    takes("parameters: loc", loc, [&](View v) { run(params, v, scale); });
    takes("parameters: scale", scale, [&](View v) { run(params, loc, v); });
  };
  three([&](const View& p, const View& l, const View& s) {
    be().predict_mean(batch_, nullptr, shape, p, l, s, y);
  });
  three([&](const View& p, const View& l, const View& s) {
    be().predict_draw(batch_, nullptr, shape, p, l, s, y);
  });
  takes("predict: y", y,
        [&](View v) { be().predict_draw(batch_, nullptr, shape, params, loc, scale, v); });
  takes("a predicted patch", y, [&](View v) { be().inject(batch_, shape, nullptr, v); });
  takes("a predicted patch", y, [&](View v) {
    be().keep(batch_, batch_, shape, v, nullptr, {3, 1});
  });
  three([&](const View& p, const View& l, const View& s) {
    be().exact_statistics(batch_, shape, HeadOutput::mixture, p, l, s, {}, nullptr);
  });
  three([&](const View& p, const View& l, const View& s) {
    be().keep_parameters(batch_, batch_, shape, p, l, s, nullptr, 3);
  });
  PathOps* const paths = be().paths();
  if (paths == nullptr) return;
  three([&](const View& p, const View& l, const View& s) {
    paths->draw(batch_, nullptr, batch_, shape, p, l, s, nullptr, y);
  });
  takes("predict: y", y, [&](View v) {
    paths->draw(batch_, nullptr, batch_, shape, params, loc, scale, nullptr, v);
  });
  const View of_rows = some(kRows, kPatch);
  takes("parameters", some(kRows, kPatch * 4 * kComponents), [&](View v) {
    paths->neighbours(batch_, shape, v, of_rows, of_rows, nullptr, nullptr, nullptr, nullptr);
  });
}

TEST_P(SeamViews, ArraysAndQuantilesOfToto2) {
  const Ops2& ops = *be().ops2();
  SeriesArrays arrays;
  arrays.patch = kPatch;
  arrays.values = some(kRows, kPatch);
  arrays.loc = arrays.scale = some(kRows, 1);
  arrays.bounds = some(kVariates, 2);
  const View z = some(kRows, 2 * kPatch), knots = some(kRows, kQuantiles * kPatch);
  const auto array = [&](const char* name, View SeriesArrays::*which) {
    const auto run = [&](View v) {
      SeriesArrays changed = arrays;
      changed.*which = v;
      ops.inputs(call_, changed, true, z);
    };
    refuses("view_type", name, run, other(kRows, (arrays.*which).width));
    refuses("view_size", name, run, some(kRows, (arrays.*which).width + 1));
  };
  array("arrays: values", &SeriesArrays::values);
  array("arrays: loc", &SeriesArrays::loc);
  array("arrays: scale", &SeriesArrays::scale);
  array("arrays: bounds", &SeriesArrays::bounds);
  takes("inputs: z", z, [&](View v) { ops.inputs(call_, arrays, true, v); });
  takes("quantiles", knots, [&](View v) { ops.quantiles(call_, arrays, v, knots); });
  takes("quantiles", knots, [&](View v) { ops.quantiles(call_, arrays, knots, v); });
  takes("quantiles", knots, [&](View v) { ops.knot_results(call_, arrays, v, {}); });
  takes("quantiles", knots, [&](View v) { ops.feed_back(call_, v, arrays); });
}

TEST_P(SeamViews, AttentionOfToto2) {
  const Ops2& ops = *be().ops2();
  SeriesArrays arrays;
  arrays.patch = kPatch;
  const HeadShape shape{kHeads, 1, kDim, kDim};
  const View gain = some(1, kDim);
  const HeadNorm norm{gain, gain, 1e-6};
  const View qkv = some(kRows, shape.row()), out = some(kRows, shape.attended());
  const View cache = some(32, kDim), table = some(kTokens, kDim / 4);
  const View factor = some(2 * kTokens, kDim / 4);
  const auto attend = [&](const HeadNorm& n, const Rotary& r, const View& q, const KvCache& k,
                          const View& o) {
    ops.time_attention(call_, call_, arrays, shape, n, r, q, k, true, o);
  };
  const Rotary rotary{table, table, factor, kTokens};
  const KvCache kv{cache, cache};
  takes("attention: gain of queries", gain, [&](View v) {
    attend({v, gain, 1e-6}, rotary, qkv, kv, out);
  });
  takes("attention: gain of keys", gain, [&](View v) {
    attend({gain, v, 1e-6}, rotary, qkv, kv, out);
  });
  takes("attention: cosine", table, [&](View v) {
    attend(norm, {v, table, factor, kTokens}, qkv, kv, out);
  });
  takes("attention: sine", table, [&](View v) {
    attend(norm, {table, v, factor, kTokens}, qkv, kv, out);
  });
  takes("attention: factor", factor, [&](View v) {
    attend(norm, {table, table, v, kTokens}, qkv, kv, out);
  });
  takes("attention: qkv", qkv, [&](View v) { attend(norm, rotary, v, kv, out); });
  takes("attention: out", out, [&](View v) { attend(norm, rotary, qkv, kv, v); });
  refuses(
      "view_size", "attention: keys",
      [&](View v) {
        attend(norm, rotary, qkv, {v, cache}, out);
      },
      some(32, kDim - 1));
  refuses(
      "view_type", "attention: values",
      [&](View v) {
        attend(norm, rotary, qkv, {cache, v}, out);
      },
      other(32, kDim));
  takes("attention: qkv", qkv,
        [&](View v) { ops.variate_attention(call_, arrays, shape, norm, v, out); });
  takes("attention: out", out,
        [&](View v) { ops.variate_attention(call_, arrays, shape, norm, qkv, v); });
}

/// What was read as something else before: inputs of bfloat16 products are bfloat16.
TEST_P(SeamViews, InputsOfBfloat16ProductsAreNotFloats) {
  if (std::string_view(GetParam()) != "cuda_bf16") GTEST_SKIP() << "float32 products";
  const Matrix w = matrix(16, kWidth, Epilogue::gated);
  ASSERT_EQ(be().operand_type(w), ElementType::bf16);
  const View x = made(ElementType::bf16, 3, kWidth), y = made(ElementType::bf16, 3, 8);
  be().linear(w, x, y, Epilogue::gated);
  refuses(
      "view_type", "linear: x", [&](View v) { be().linear(w, v, y, Epilogue::gated); },
      some(3, kWidth));
  refuses(
      "view_type", "linear: y", [&](View v) { be().linear(w, x, v, Epilogue::gated); }, some(3, 8));
  std::vector<double> values(24);
  refuses(
      "view_type", "download: from", [&](View v) { be().download(v, values); }, y);
}

INSTANTIATE_TEST_SUITE_P(All, SeamViews,
                         testing::Values("reference", "float64", "cpu", "cuda", "cuda_bf16"),
                         [](const auto& it) { return std::string(it.param); });

}  // namespace
}  // namespace toto
