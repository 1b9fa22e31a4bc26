// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <deque>
#include <optional>

#include "server/decoder.h"
#include "server/run.h"
#include "server/streams.h"

namespace toto::server {
namespace {

constexpr std::size_t kMaxKept = std::size_t{1} << 20;  // bytes of lines that wait or are computed
constexpr std::size_t kPieceOut = std::size_t{64} << 10;  // of the answer, at least one line

/// All of it runs on the strand of the exchange.
class Lines final : public std::enable_shared_from_this<Lines> {
 public:
  Lines(ExchangePointer exchange, const Models& models, const Limits& limits,
        const Protocol& protocol, std::size_t max_line)
      : exchange_(std::move(exchange)),
        models_(models),
        limits_(limits),
        protocol_(protocol),
        max_line_(max_line),
        decoder_(exchange_->request().header("content-encoding")) {
    account_.route = protocol.route;
    line_.headers = exchange_->request().headers;
    line_.method = "POST";
    line_.path = exchange_->request().path;
    line_.id = exchange_->request().id;
  }

  /// What the client is given next is asked for.
  void next(std::function<void(std::string, bool)> take) {
    take_ = std::move(take);
    give();
    pump();
  }
  /// The client has gone.
  void abandon() {
    take_ = {};
    ended_ = true;
    for (const auto& slot : slots_) {
      if (slot->running == nullptr) continue;
      slot->running->gone = true;
      cancel(*slot->running);
    }
    slots_.clear();
    exchange_.reset();
  }
  [[nodiscard]] const Account& account() const { return account_; }

  void pump() {
    while (!ended_ && !reading_ && has_room()) {
      try {
        if (at_ == text_.size()) {
          text_ = decoder_.next();
          at_ = 0;
        }
        if (text_.empty()) {
          if (!last_) {
            give();  // what is ready, while more is waited for
            return read();
          }
          if (!decoder_.whole()) return end("invalid_encoding", "the compressed body is cut off");
          if (!part_.empty()) begin_line(std::exchange(part_, {}));
          ended_ = true;
          return give();
        }
        split();
      } catch (...) {
        const Error error = current_error();
        end(error.code(), error.message());
      }
    }
    give();  // lines that were wrong at once have filled the room
  }

 private:
  struct Slot {
    RunningPointer running;  // while it is computed
    bool ready = false;
    std::string text;
    std::size_t bytes = 0;
  };
  using SlotPointer = std::shared_ptr<Slot>;

  [[nodiscard]] bool has_room() const { return slots_.size() < kMaxLines && kept_ < kMaxKept; }

  void read() {
    reading_ = true;
    exchange_->read([weak = weak_from_this()](BodyPiece piece) {
      const auto self = weak.lock();
      if (self == nullptr || self->exchange_ == nullptr) return;
      self->reading_ = false;
      self->last_ = piece.last;
      if (!piece.wrong.empty()) return self->end(piece.wrong, piece.message);
      self->decoder_.give(std::move(piece.bytes));
      self->pump();
    });
  }

  /// The next line of what was decompressed, if it has one to its end.
  void split() {
    const std::string_view text = std::string_view(text_).substr(at_);
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (part_.size() + end > max_line_) {
      throw Error(
          ExitStatus::usage, "body_too_large",
          fmt::format("line {} is longer than {} bytes (max-body)", number_ + 1, max_line_));
    }
    part_.append(text.substr(0, end));
    at_ += std::min(end + 1, text.size());
    if (end < text.size()) begin_line(std::exchange(part_, {}));
    if (!exchange_->keep(kept_ + part_.size())) {
      throw Error(ExitStatus::usage, "memory_full",
                  "the bodies of other requests take all the memory there is");
    }
  }

  void begin_line(std::string text) {
    ++number_;
    if (text.find_first_not_of(" \t\r") == std::string::npos) return;
    const auto slot = std::make_shared<Slot>();
    slot->bytes = text.size();
    kept_ += slot->bytes;
    slots_.push_back(slot);
    ++account_.series;
    line_.body = std::move(text);
    try {
      ParsedCall parsed = protocol_.parse(line_, limits_);
      const ModelPointer model = models_.find(parsed.call.model);
      account_.model = model->name;
      const auto deadline = deadline_of(parsed.call, limits_, Clock::now());
      slot->running = begin(
          model, std::move(parsed), deadline, protocol_.route,
          [exchange = exchange_, weak = weak_from_this(), slot](const RunningPointer& running) {
            exchange->post([weak, slot, running] {
              if (const auto self = weak.lock()) self->finish(*slot, *running);
            });
          });
    } catch (...) {
      slot->text = error_response(current_error(), protocol_.dialect, line_).body + "\n";
      slot->ready = true;
    }
    line_.body.clear();
  }

  void finish(Slot& slot, Running& running) {
    if (exchange_ == nullptr) return;
    slot.text = answer_of(running, protocol_.dialect, line_).body + "\n";
    slot.running.reset();
    slot.ready = true;
    give();
    pump();
  }

  /// An error of the whole body, behind the answers that there are.
  void end(std::string_view code, std::string_view message) {
    if (ended_) return;
    ended_ = true;
    account_.code = code;
    const auto slot = std::make_shared<Slot>();
    const Error error(ExitStatus::usage, code, message, "body");
    slot->text = error_response(error, protocol_.dialect, line_).body + "\n";
    slot->ready = true;
    slots_.push_back(slot);
    give();
  }

  void give() {
    if (!take_) return;
    std::string out;
    while (!slots_.empty() && slots_.front()->ready && out.size() < kPieceOut) {
      out += slots_.front()->text;
      kept_ -= slots_.front()->bytes;
      slots_.pop_front();
    }
    const bool last = ended_ && slots_.empty();
    if (out.empty() && !last) return;
    (void)exchange_->keep(kept_ + part_.size());
    std::exchange(take_, {})(std::move(out), last);
  }

  ExchangePointer exchange_;
  const Models& models_;
  const Limits& limits_;
  const Protocol protocol_;
  const std::size_t max_line_;
  Decoder decoder_;
  HttpRequest line_;  // the request that a line is
  Account account_;
  std::function<void(std::string, bool)> take_;
  std::deque<SlotPointer> slots_;
  std::string text_;  // decompressed, up to `at_` taken
  std::size_t at_ = 0;
  std::string part_;  // of a line
  std::size_t kept_ = 0, number_ = 0;
  bool reading_ = false, last_ = false, ended_ = false;
};

/// What the session holds: when it lets go, the client has gone or has everything.
class LinesSource final : public BodySource {
 public:
  explicit LinesSource(std::shared_ptr<Lines> lines) : lines_(std::move(lines)) {}
  ~LinesSource() override { lines_->abandon(); }
  void next(std::function<void(std::string, bool)> take) override { lines_->next(std::move(take)); }
  const Account* account() const override { return &lines_->account(); }

 private:
  std::shared_ptr<Lines> lines_;
};

}  // namespace

bool is_lines(const HttpRequest& request) {
  const std::string type = lower_case(request.header("content-type"));
  const std::string_view word = std::string_view(type).substr(0, type.find_first_of("; "));
  return word == "application/x-ndjson" || word == "application/jsonl" ||
         word == "application/ndjson" || word == "application/x-jsonlines";
}

void answer_lines(const ExchangePointer& exchange, const Models& models, const Limits& limits,
                  const Protocol& protocol, std::size_t max_line) {
  HttpResponse response;
  response.content_type = "application/x-ndjson";
  response.source = std::make_shared<LinesSource>(
      std::make_shared<Lines>(exchange, models, limits, protocol, max_line));
  exchange->respond(std::move(response));
}

}  // namespace toto::server
