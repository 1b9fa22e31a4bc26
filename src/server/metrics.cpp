// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

namespace toto::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
    0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};

ClientMetric metric(double value, Labels labels, MetricType type) {
  ClientMetric one;
  one.label = std::move(labels);
  (type == MetricType::Counter ? one.counter.value : one.gauge.value) = value;
  return one;
}

/// What services count, as families.
class Families {
 public:
  void add(const std::string& name, const std::string& help, MetricType type, double value,
           Labels labels) {
    family(name, help, type).metric.push_back(metric(value, std::move(labels), type));
  }
  MetricFamily& family(const std::string& name, const std::string& help, MetricType type) {
    for (MetricFamily& one : all) {
      if (one.name == name) return one;
    }
    all.push_back({name, help, type, {}});
    return all.back();
  }
  std::vector<MetricFamily> all;
};

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void add_batches(Families& families, const ServiceCounters& counters, const Labels& labels) {
  ClientMetric one;
  one.label = labels;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counters.batch_costs.size(); ++i) {
    sum += counters.batch_costs[i];
    const bool last = i + 1 == counters.batch_costs.size();
    one.histogram.bucket.push_back(
        {sum, last ? INFINITY : std::pow(4.0, static_cast<double>(i + 1))});
  }
  one.histogram.sample_count = sum;
  for (const auto& device : counters.devices) one.histogram.sample_sum += device.cost;
  families.family("toto_batch_cost_tokens", "Tokens of a micro-batch", MetricType::Histogram)
      .metric.push_back(one);
}

void add_service(Families& families, const ServedModel& model) {
  const ServiceCounters c = model.service.counters();
  const Labels labels = {{"model", model.name}};
  const auto with = [&](const char* key, const std::string& value) {
    Labels more = labels;
    more.push_back({key, value});
    return more;
  };
  const auto result = [&](const char* word, std::uint64_t value) {
    families.add("toto_series_total", "Series by how they ended", MetricType::Counter,
                 static_cast<double>(value), with("result", word));
  };
  result("completed", c.completed);
  result("failed", c.failed);
  result("cancelled", c.cancelled);
  result("expired", c.expired);
  const auto refused = [&](const char* word, std::uint64_t value) {
    families.add("toto_refused_total", "Series that were not admitted, by reason",
                 MetricType::Counter, static_cast<double>(value), with("reason", word));
  };
  refused("queue_full", c.refused_queue_full);
  refused("request_too_large", c.refused_too_large);
  refused("draining", c.refused_draining);
  families.add("toto_queue_series", "Series that wait", MetricType::Gauge,
               static_cast<double>(c.queued), labels);
  families.add("toto_running_series", "Series that are computed now", MetricType::Gauge,
               static_cast<double>(c.running), labels);
  families.add("toto_callback_errors_total", "Defects of this program", MetricType::Counter,
               static_cast<double>(c.callback_errors), labels);
  add_batches(families, c, labels);
  for (const auto& device : c.devices) {
    const Labels own = with("device", device.name);
    families.add("toto_device_busy_seconds_total", "Time a device computed", MetricType::Counter,
                 device.busy_seconds, own);
    families.add("toto_device_batches_total", "Micro-batches of a device", MetricType::Counter,
                 static_cast<double>(device.batches), own);
    families.add("toto_device_tokens_total", "Tokens that went through the network",
                 MetricType::Counter, device.cost, own);
  }
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(const Models& m) : models(m) {}

  const Models& models;
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("toto_http_requests_total")
                                                          .Help("Answers by route and status")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& errors = prometheus::BuildCounter()
                                                        .Name("toto_errors_total")
                                                        .Help("Answers by error code")
                                                        .Register(registry);
  prometheus::Family<prometheus::Counter>& events =
      prometheus::BuildCounter()
          .Name("toto_engine_events_total")
          .Help("Events of the engine: plans, graphs, memory")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& seconds =
      prometheus::BuildHistogram()
          .Name("toto_http_request_seconds")
          .Help("From the header to the last byte of the answer")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& queue_family = prometheus::BuildHistogram()
                                                                .Name("toto_queue_seconds")
                                                                .Help("Time a request waited")
                                                                .Register(registry);
  prometheus::Family<prometheus::Histogram>& compute_family =
      prometheus::BuildHistogram()
          .Name("toto_compute_seconds")
          .Help("Of the micro-batch that a request was in")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& bytes = prometheus::BuildCounter()
                                                       .Name("toto_http_body_bytes_total")
                                                       .Help("Bodies read")
                                                       .Register(registry);
  prometheus::Family<prometheus::Counter>& lost = prometheus::BuildCounter()
                                                      .Name("toto_http_unsent_total")
                                                      .Help("Answers that the client did not take")
                                                      .Register(registry);
  prometheus::Histogram& queue = queue_family.Add({}, kSeconds);
  prometheus::Histogram& compute = compute_family.Add({}, kSeconds);
  prometheus::Counter& body_bytes = bytes.Add({});
  prometheus::Counter& unsent = lost.Add({});
  std::function<TransportCounts()> transport;
  struct Gauge {
    std::string name, help;
    std::function<double()> value;
  };
  std::vector<Gauge> gauges;
};

Metrics::Metrics(const Models& models) : impl_(std::make_unique<Impl>(models)) {}
Metrics::~Metrics() = default;

void Metrics::count(const HttpResponse& response, std::size_t body_bytes, double seconds,
                    bool sent) {
  const Account& account = response.account;
  const std::string route = account.route.empty() ? "other" : account.route;
  impl_->requests.Add({{"route", route}, {"status", std::to_string(response.status)}}).Increment();
  impl_->seconds.Add({{"route", route}}, kSeconds).Observe(seconds);
  if (!account.code.empty()) impl_->errors.Add({{"code", account.code}}).Increment();
  impl_->body_bytes.Increment(static_cast<double>(body_bytes));
  if (!sent) impl_->unsent.Increment();
  if (account.compute_seconds > 0) {
    impl_->queue.Observe(account.queue_seconds);
    impl_->compute.Observe(account.compute_seconds);
  }
}

void Metrics::count_event(std::string_view code) {
  impl_->events.Add({{"code", std::string(code)}}).Increment();
}

void Metrics::watch(std::function<TransportCounts()> transport) {
  impl_->transport = std::move(transport);
}

void Metrics::add_gauge(std::string name, std::string help, std::function<double()> value) {
  impl_->gauges.push_back({std::move(name), std::move(help), std::move(value)});
}

std::string Metrics::text() const {
  std::vector<MetricFamily> all = impl_->registry.Collect();
  Families families;
  for (const ModelPointer& model : impl_->models.all()) add_service(families, *model);
  if (impl_->transport) {
    const TransportCounts c = impl_->transport();
    const auto add = [&](const char* name, const char* help, MetricType type, std::uint64_t value) {
      families.add(name, help, type, static_cast<double>(value), {});
    };
    add("toto_connections", "Open connections", MetricType::Gauge, c.connections);
    add("toto_connections_total", "Connections accepted", MetricType::Counter, c.accepted);
    add("toto_connections_refused_total", "Connections above the limit", MetricType::Counter,
        c.refused);
    add("toto_requests_in_flight", "Requests that are not answered yet", MetricType::Gauge,
        c.in_flight);
    add("toto_held_body_bytes", "Bodies in memory", MetricType::Gauge, c.held_bytes);
  }
  for (const Impl::Gauge& gauge : impl_->gauges) {
    families.add(gauge.name, gauge.help, MetricType::Gauge, gauge.value(), {});
  }
  families.add("process_resident_memory_bytes", "Memory of the process", MetricType::Gauge,
               resident_bytes(), {});
  all.insert(all.end(), families.all.begin(), families.all.end());
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace toto::server
