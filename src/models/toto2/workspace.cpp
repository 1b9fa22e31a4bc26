// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/workspace.h"

#include <span>

#include "models/toto2/rotary.h"

namespace toto::toto2 {
namespace {

struct Tables {
  std::size_t cosine, sine, factor, bytes;
  Tables(const Toto2& net, const Capacity& c) {
    const std::size_t each = static_cast<std::size_t>(c.of[kPositions]) *
                             static_cast<std::size_t>(net.config().qk_dim / 4) *
                             net.backend().element_size();
    Offsets offsets;
    cosine = offsets.take(each);
    sine = offsets.take(each);
    factor = offsets.take(net.config().use_xpos ? 2 * each : 0);
    bytes = offsets.used();
  }
};

}  // namespace

std::unique_ptr<Toto2Workspace> lay_out(const Toto2& net, const Capacity& c, std::byte* base,
                                        const Capacity& tables_for, std::byte* tables) {
  const auto element = static_cast<std::int64_t>(net.backend().element_size());
  const std::int64_t patch = net.patch();
  const std::int64_t width = net.config().d_model;
  const HeadShape shape = net.heads();
  Pieces pieces(base);
  const auto values = [&](std::int64_t count) { return pieces.take(count * element); };
  auto w = std::make_unique<Toto2Workspace>();
  w->capacity = c;
  w->arrays.patch = net.patch();
  // Values are staged in float32; other backends have them here in their own type.
  if (element != sizeof(float)) w->arrays.values = values(c.of[kPatches] * patch);
  w->arrays.loc = values(c.of[kPatches]);
  w->arrays.scale = values(c.of[kPatches]);
  w->arrays.bounds = values(2 * c.of[kLanes]);
  w->act.inputs = values(c.of[kRows] * 2 * patch);
  w->act.inner = values(c.of[kRows] * net.inner());
  w->act.hidden = values(c.of[kRows] * width);
  w->act.normed = values(c.of[kRows] * width);
  w->act.qkv = values(c.of[kRows] * shape.row());
  w->act.attended = values(c.of[kRows] * shape.attended());
  w->act.wanted = values(c.of[kWanted] * width);
  w->act.raw = values(c.of[kWanted] * kQuantiles * patch);
  w->quantiles = values(c.of[kWanted] * kQuantiles * patch);
  for (std::int64_t i = 0; i < c.of[kCaches]; ++i) {
    void* const keys = values(c.of[kPatches] * shape.groups * shape.qk);
    w->kv.push_back({keys, values(c.of[kPatches] * shape.groups * shape.v)});
  }
  w->bytes = pieces.used();
  if (tables != nullptr) {
    const Tables at(net, tables_for);
    w->rotary = {tables + at.cosine, tables + at.sine,
                 net.config().use_xpos ? tables + at.factor : nullptr,
                 static_cast<std::int32_t>(tables_for.of[kPositions])};
  }
  return w;
}

Capacity tables_of(const Capacity& capacity) {
  Capacity tables;
  tables.of[kPositions] = capacity.of[kPositions];
  return tables;
}

std::size_t table_bytes(const Toto2& net, const Capacity& tables_for) {
  return Tables(net, tables_for).bytes;
}

void fill_tables(const Toto2& net, const Capacity& tables_for, std::byte* tables) {
  const Tables at(net, tables_for);
  const Backend& be = net.backend();
  const RotaryTables rotary = rotary_tables(static_cast<std::int32_t>(tables_for.of[kPositions]),
                                            net.config().qk_dim, net.config().use_xpos);
  be.upload(std::span<const double>(rotary.cosine), tables + at.cosine);
  be.upload(std::span<const double>(rotary.sine), tables + at.sine);
  be.upload(std::span<const double>(rotary.factor), tables + at.factor);
}

}  // namespace toto::toto2
