// SPDX-License-Identifier: Apache-2.0
#include "models/toto2/workspace.h"

#include <span>

#include "models/toto2/rotary.h"

namespace toto::toto2 {
namespace {

struct Tables {
  View cosine, sine, factor;  // [positions][pairs], the last of twice as many, or without rows
  std::size_t bytes;
  Tables(const Toto2& net, const Capacity& c, std::byte* base) {
    Offsets offsets;
    const auto place = [&](std::size_t size) {
      const std::size_t at = offsets.take(size);
      return base == nullptr ? nullptr : base + at;
    };
    const auto table = [&](std::int64_t rows) {
      View v{nullptr, net.backend().element_type(), net.config().qk_dim / 4,
             static_cast<std::int32_t>(rows)};
      v.data = place(static_cast<std::size_t>(v.bytes()));
      return v;
    };
    cosine = table(c.of[kPositions]);
    sine = table(c.of[kPositions]);
    factor = table(net.config().use_xpos ? 2 * c.of[kPositions] : 0);
    bytes = offsets.used();
  }
};

}  // namespace

std::unique_ptr<Toto2Workspace> lay_out(const Toto2& net, const Capacity& c, std::byte* base,
                                        const Capacity& tables_for, std::byte* tables) {
  const ElementType type = net.backend().element_type();
  const std::int64_t patch = net.patch();
  const std::int64_t width = net.config().d_model;
  const HeadShape shape = net.heads();
  Pieces pieces(base);
  const auto values = [&](std::int64_t count, std::int64_t columns) {
    return pieces.take(type, count, columns);
  };
  auto w = std::make_unique<Toto2Workspace>();
  w->capacity = c;
  w->arrays.patch = net.patch();
  // Values are staged in float32; other backends have them here in their own type.
  if (type != ElementType::f32) w->arrays.values = values(c.of[kPatches], patch);
  w->arrays.loc = values(c.of[kPatches], 1);
  w->arrays.scale = values(c.of[kPatches], 1);
  w->arrays.bounds = values(c.of[kLanes], 2);
  w->act.inputs = values(c.of[kRows], 2 * patch);
  w->act.inner = values(c.of[kRows], net.inner());
  w->act.hidden = values(c.of[kRows], width);
  w->act.normed = values(c.of[kRows], width);
  w->act.qkv = values(c.of[kRows], shape.row());
  w->act.attended = values(c.of[kRows], shape.attended());
  w->act.wanted = values(c.of[kWanted], width);
  w->act.raw = values(c.of[kWanted], kQuantiles * patch);
  w->quantiles = values(c.of[kWanted], kQuantiles * patch);
  if (c.of[kPathLanes] > 0) {
    w->scores = pieces.take(ElementType::f64, c.of[kWanted], patch);
    w->rho = pieces.take(ElementType::f32, c.of[kPathLanes], patch);
  }
  for (std::int64_t i = 0; i < c.of[kCaches]; ++i) {
    const View keys = values(c.of[kPatches] * shape.groups, shape.qk);
    w->kv.push_back({keys, values(c.of[kPatches] * shape.groups, shape.v)});
  }
  w->bytes = pieces.used();
  if (tables != nullptr) {
    const Tables at(net, tables_for, tables);
    w->rotary = {at.cosine, at.sine, net.config().use_xpos ? at.factor : View{},
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
  return Tables(net, tables_for, nullptr).bytes;
}

void fill_tables(const Toto2& net, const Capacity& tables_for, std::byte* tables) {
  const Tables at(net, tables_for, tables);
  const Backend& be = net.backend();
  const RotaryTables rotary = rotary_tables(static_cast<std::int32_t>(tables_for.of[kPositions]),
                                            net.config().qk_dim, net.config().use_xpos);
  be.upload(std::span<const double>(rotary.cosine), at.cosine);
  be.upload(std::span<const double>(rotary.sine), at.sine);
  be.upload(std::span<const double>(rotary.factor), at.factor);
}

}  // namespace toto::toto2
