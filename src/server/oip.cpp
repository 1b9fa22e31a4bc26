// SPDX-License-Identifier: Apache-2.0
// The Open Inference Protocol (KServe's v2, Triton): infer and the metadata of a model.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/json.h"
#include "server/errors.h"
#include "server/json_text.h"
#include "server/oip_tensors.h"
#include "server/options.h"
#include "server/protocols.h"
#include "server/unread.h"

namespace toto::server {
namespace {

struct Output {
  std::string name;
  bool binary = false;
};

struct Asked {
  std::string id;
  std::vector<Output> outputs;
};

constexpr std::string_view kOutputs[] = {"mean", "quantiles", "quantile_levels", "samples"};

Error invalid_tensor(std::string_view message, std::string_view where) {
  return {ExitStatus::usage, "invalid_tensor", message, where};
}

std::vector<double> levels_of(const Tensor& tensor, const Limits& limits, std::string_view where) {
  require_limit(tensor.count, limits.max_levels, "quantile levels", "--max-quantiles", where);
  std::vector<double> levels;
  for (double level : tensor.numbers) {
    if (tensor.datatype == "FP32") {  // 0.1f means 0.1
      const std::string text = fmt::format("{}", static_cast<float>(level));
      std::from_chars(text.data(), text.data() + text.size(), level);
    }
    if (!(level > 0 && level < 1)) {
      throw Error(ExitStatus::usage, "invalid_quantile",
                  fmt::format("expected levels above 0 and below 1, found {}", level), where);
    }
    levels.push_back(level);
  }
  std::ranges::sort(levels);
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

std::size_t whole_of(const Tensor& tensor, std::string_view where) {
  if (tensor.count != 1 || tensor.numbers.empty() || !(tensor.numbers[0] >= 1) ||
      tensor.numbers[0] > 1e12 || tensor.numbers[0] != std::floor(tensor.numbers[0])) {
    throw invalid_tensor("expected one whole number of at least 1", where);
  }
  return static_cast<std::size_t>(tensor.numbers[0]);
}

/// The tensors that make series, by name.
struct Tensors {
  std::optional<Tensor> target, mask, id, groups, levels, horizon;

  std::optional<Tensor>* place(std::string_view name) {
    if (name == "target") return &target;
    if (name == "mask") return &mask;
    if (name == "id") return &id;
    if (name == "groups") return &groups;
    if (name == "quantile_levels") return &levels;
    if (name == "horizon") return &horizon;
    return nullptr;
  }
};

Tensors read_tensors(const JsonField& inputs, BinaryPart& binary) {
  Tensors tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensor tensor = read_tensor(inputs[i], binary);
    std::optional<Tensor>* place = tensors.place(tensor.name);
    if (place == nullptr) {
      throw invalid_tensor("expected target, mask, id, groups, quantile_levels or horizon, found " +
                               quote(tensor.name),
                           inputs[i].path());
    }
    if (place->has_value()) throw invalid_tensor("it is there twice", inputs[i].path());
    if ((tensor.datatype == "BYTES") != (tensor.name == "id")) {
      throw invalid_tensor("BYTES are for id alone, and id has no other type", inputs[i].path());
    }
    *place = std::move(tensor);
  }
  if (!tensors.target) throw invalid_tensor("expected a tensor \"target\"", "inputs");
  return tensors;
}

/// Series `b` of [B][V][T]. What is NaN is missing, and so is what the mask says.
SeriesInput series_of(const Tensors& tensors, std::size_t b, std::size_t variates,
                      std::size_t steps) {
  const Tensor& target = *tensors.target;
  SeriesInput input;
  input.id = tensors.id ? tensors.id->strings[b] : fmt::format("series-{}", b);
  input.steps = steps;
  input.targets = variates;
  for (std::size_t v = 0; v < variates; ++v) {
    std::vector<float> row(steps);
    std::vector<bool> missing(steps);
    for (std::size_t t = 0; t < steps; ++t) {
      const std::size_t at = (b * variates + v) * steps + t;
      const double number = target.numbers[at];
      missing[t] = std::isnan(number) || (tensors.mask && tensors.mask->numbers[at] == 0);
      if (missing[t]) continue;
      if (!(std::abs(number) <= std::numeric_limits<float>::max())) {
        throw Error(ExitStatus::usage, "not_finite",
                    fmt::format("expected numbers within float32, found {}", number), "target",
                    "NaN is a missing value");
      }
      row[t] = static_cast<float>(number);
    }
    append_row(input, std::move(row), missing);
  }
  if (tensors.groups) {
    for (const double group : tensors.groups->numbers) {
      if (!(std::abs(group) < 1e6)) throw invalid_tensor("expected small whole numbers", "groups");
      input.groups.push_back(static_cast<std::int32_t>(group));
    }
  }
  return input;
}

void add_series(const Tensors& tensors, const Limits& limits, ForecastCall& call) {
  std::vector<std::size_t> shape = tensors.target->shape;
  if (shape.empty() || shape.size() > 3) {
    throw invalid_tensor(
        "expected a shape of [steps], [variates, steps] or [series, variates, "
        "steps]",
        "target");
  }
  while (shape.size() < 3) shape.insert(shape.begin(), 1);
  const auto [series, variates, steps] = std::tuple(shape[0], shape[1], shape[2]);
  if (tensors.target->count == 0) throw invalid_tensor("expected at least one value", "target");
  require_limit(series, limits.max_series, "series", "--max-series", "target");
  require_limit(variates, limits.max_variates, "variates", "--max-variates", "target");
  if (tensors.mask && tensors.mask->count != tensors.target->count) {
    throw invalid_tensor("expected the shape of target", "mask");
  }
  if (tensors.id && tensors.id->count != series) {
    throw invalid_tensor(fmt::format("expected {} ids, one for each series", series), "id");
  }
  if (tensors.groups && tensors.groups->count != variates) {
    throw invalid_tensor(fmt::format("expected {} groups, one for each variate", variates),
                         "groups");
  }
  for (std::size_t b = 0; b < series; ++b) {
    call.inputs.push_back(series_of(tensors, b, variates, steps));
  }
}

Asked read_outputs(const JsonField& body, const JsonField& parameters) {
  Asked asked;
  bool binary = false;
  if (const auto all = parameters.find("binary_data_output")) binary = all->boolean();
  const auto outputs = body.find("outputs");
  if (!outputs || outputs->size() == 0) {
    for (const std::string_view name : kOutputs) {
      if (name != "samples") asked.outputs.push_back({std::string(name), binary});
    }
    return asked;
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const JsonField one = (*outputs)[i];
    Output output{one.at("name").text(), binary};
    if (std::ranges::find(kOutputs, output.name) == std::end(kOutputs)) {
      one.fail("mean, quantiles, quantile_levels or samples");
    }
    for (const Output& other : asked.outputs) {
      if (other.name == output.name) one.fail("each output once");
    }
    if (const auto own = one.find("parameters")) {
      if (const auto flag = own->find("binary_data")) output.binary = flag->boolean();
      if (own->find("shared_memory_region")) own->fail("no shared memory, which is not had here");
    }
    asked.outputs.push_back(output);
  }
  return asked;
}

/// Data of an output, all series one behind the other.
void collect(std::string_view name, const std::vector<Forecast>& all, std::vector<float>& out) {
  for (const Forecast& f : all) {
    const std::vector<float>& from = name == "mean"        ? f.mean
                                     : name == "quantiles" ? f.quantiles
                                                           : f.samples;
    out.insert(out.end(), from.begin(), from.end());
  }
}

void write_output(JsonText& out, std::string& binary, const Output& output,
                  const std::vector<Forecast>& all) {
  const Forecast& first = all.front();
  std::vector<std::size_t> shape = {all.size(), first.variates, first.horizon};
  if (output.name == "quantiles") shape.insert(shape.begin() + 1, first.levels.size());
  if (output.name == "samples") shape.insert(shape.begin() + 1, first.num_samples);
  if (output.name == "quantile_levels") shape = {first.levels.size()};
  const bool levels = output.name == "quantile_levels";
  out.open('{').key("name").string(output.name).key("datatype").string(levels ? "FP64" : "FP32");
  out.key("shape").open('[');
  for (const std::size_t size : shape) out.whole(size);
  out.close(']');
  std::vector<float> values;
  if (!levels) collect(output.name, all, values);
  if (output.binary) {
    const std::size_t before = binary.size();
    if (levels) {
      binary.append(reinterpret_cast<const char*>(first.levels.data()), first.levels.size() * 8);
    } else {
      binary.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    }
    out.key("parameters").open('{').key("binary_data_size").whole(binary.size() - before);
    out.close('}').close('}');
    return;
  }
  out.key("data");
  if (levels) {
    out.open('[');
    for (const double level : first.levels) out.number(level);
    out.close(']');
  } else {
    out.numbers(values);
  }
  out.close('}');
}

HttpResponse render(const Asked& asked, const ForecastCall& call,
                    const std::vector<Forecast>& forecasts) {
  JsonText out;
  std::string binary;
  bool any_binary = false;
  out.open('{').key("model_name").string(call.model).key("model_version").string("1");
  out.key("id").string(asked.id);
  out.key("parameters").open('{');
  out.key("exact_steps").whole(forecasts.front().exact_steps);
  if (!call.warnings.empty()) {  // parameters are no lists
    out.key("warnings").string(fmt::to_string(fmt::join(call.warnings, "; ")));
  }
  out.close('}');
  out.key("outputs").open('[');
  for (const Output& output : asked.outputs) {
    any_binary = any_binary || output.binary;
    write_output(out, binary, output, forecasts);
  }
  HttpResponse response;
  response.body = out.close(']').close('}').take();
  if (any_binary) {
    response.headers.push_back(
        {"inference-header-content-length", std::to_string(response.body.size())});
    response.content_type = "application/octet-stream";
    response.body += binary;
  }
  return response;
}

/// The JSON part and what is behind it.
std::pair<std::string_view, std::string_view> split(const HttpRequest& request) {
  const std::string_view text = request.header("inference-header-content-length");
  const std::string_view body = request.body;
  if (text.empty()) return {body, {}};
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size > body.size()) {
    throw invalid_request(
        fmt::format("expected a whole number up to the {} bytes of the body", body.size()),
        "Inference-Header-Content-Length");
  }
  return {body.substr(0, size), body.substr(size)};
}

}  // namespace

ParsedCall parse_oip(const HttpRequest& request, std::string_view model, const Limits& limits) {
  const auto [json_part, binary_part] = split(request);
  const JsonTree tree{parse_json(json_part, ExitStatus::usage, "body")};
  const JsonField body(tree.root, "");
  ParsedCall parsed;
  ForecastCall& call = parsed.call;
  call.model = model;
  call.timeout_seconds = timeout_of(request);
  const nlohmann::json none = nlohmann::json::object();
  const JsonField parameters =
      body.object().find("parameters").value_or(JsonField(none, "parameters"));
  Unread unread;
  unread.look(parameters, "parameters", {"horizon", "timeout", "binary_data_output"}, true);
  call.warnings = unread.warnings();
  // Ours; the protocol has priority and timeout with meanings of its own.
  nlohmann::json own = parameters.object().value();
  own.erase("priority");
  const SharedOptions shared = read_options(JsonField(own, "parameters"), limits, call);
  if (const auto priority = parameters.find("priority")) {  // 1 is the highest, 0 the default
    const std::uint64_t level = priority->whole(0, std::numeric_limits<std::uint32_t>::max());
    call.priority = -static_cast<int>(std::min<std::uint64_t>(level == 0 ? 0 : level - 1, 100));
  }
  if (const auto timeout = parameters.find("timeout")) {  // in us; 0: none
    const std::uint64_t time = timeout->whole(0, std::uint64_t{1} << 50);
    if (time > 0) call.timeout_seconds = static_cast<double>(time) / 1e6;
  }
  Asked asked = read_outputs(body, parameters);
  if (const auto id = body.find("id")) asked.id = id->text();
  const JsonField inputs = body.at("inputs");
  BinaryPart binary(binary_part);
  const Tensors tensors = read_tensors(inputs, binary);
  binary.finish();

  ForecastOptions options = shared.forecast;
  options.levels = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  if (tensors.levels) options.levels = levels_of(*tensors.levels, limits, "quantile_levels");
  if (options.mean_only) options.levels.clear();
  if (tensors.horizon) {
    options.horizon = whole_of(*tensors.horizon, "horizon");
    require_limit(options.horizon, limits.max_horizon, "steps", "--max-horizon", "horizon");
  } else if (const auto horizon = parameters.find("horizon")) {
    options.horizon = read_horizon(*horizon, limits);
  }
  for (const Output& output : asked.outputs) {
    if (output.name == "samples") options.keep_samples = true;
  }
  options.horizon = std::min(options.horizon, limits.max_horizon);
  add_series(tensors, limits, call);
  for (SeriesInput& input : call.inputs) {
    input.options = options;
    keep_context(input, shared.context);
  }
  parsed.render = [asked = std::move(asked)](const ForecastCall& c, std::vector<Forecast>& f) {
    return render(asked, c, f);
  };
  return parsed;
}

std::string oip_metadata(const ModelInfo& model, std::string_view name) {
  JsonText out;
  const auto tensor = [&out](std::string_view tensor_name, std::string_view type,
                             std::initializer_list<int> shape) {
    out.open('{').key("name").string(tensor_name).key("datatype").string(type).key("shape");
    out.open('[');
    for (const int size : shape) out.integer(size);
    out.close(']').close('}');
  };
  out.open('{').key("name").string(name).key("versions").open('[').string("1").close(']');
  out.key("platform").string("toto.cpp_" + model.architecture);
  out.key("inputs").open('[');
  tensor("target", "FP32", {-1, -1, -1});
  tensor("mask", "BOOL", {-1, -1, -1});
  tensor("id", "BYTES", {-1});
  tensor("groups", "INT32", {-1});
  tensor("horizon", "INT64", {1});
  tensor("quantile_levels", "FP64", {-1});
  out.close(']').key("outputs").open('[');
  tensor("mean", "FP32", {-1, -1, -1});
  tensor("quantiles", "FP32", {-1, -1, -1, -1});
  tensor("quantile_levels", "FP64", {-1});
  tensor("samples", "FP32", {-1, -1, -1, -1});
  return out.close(']').close('}').take();
}

}  // namespace toto::server
