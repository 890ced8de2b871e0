import DownpipeCore
import DownpipeTimeline
import Foundation
import Tracing

/// The open spans of one downloader.
struct DownloadSpans {
  /// The spans of one download.
  private struct Spans {
    let download: any Span
    var part: (any Span)?
    var bytes: Int64 = 0
    var bytesOfPart: Int64 = 0
  }

  private let tracer: any Tracer
  private var timeline = Timeline()
  private var spans: [DownloadID: Spans] = [:]
  private var clock: EventClock?
  private var now = SpanInstant(nanosecondsSinceEpoch: 0)

  init(_ tracer: any Tracer) { self.tracer = tracer }

  mutating func receive(_ event: DownloadEvent) {
    let clock = clock ?? EventClock(event)
    self.clock = clock
    now = max(now, clock.instant(of: event))
    for change in timeline.receive(event) { apply(change, event) }
    note(event)
  }

  /// Ends all spans.
  mutating func end() {
    for change in timeline.end() { apply(change, nil) }
  }

  private mutating func apply(_ change: Timeline.Change, _ event: DownloadEvent?) {
    switch change.kind {
    case .began:
      if let event { begin(event.request) }
    case .beganPart(let part):
      beginPart(part, of: change.id, event)
    case .replied:
      break
    case .fetched(let bytes):
      spans[change.id]?.bytes += bytes
      spans[change.id]?.bytesOfPart += bytes
    case .endedPart(let part, _, let error):
      endPart(part, of: change.id, error)
    case .ended(let ending, _):
      end(change.id, ending)
    }
  }

  // MARK: Downloads

  private mutating func begin(_ request: DownloadRequest) {
    let span = tracer.startSpan("download", context: .topLevel, ofKind: .internal, at: now)
    span.updateAttributes { attributes in
      attributes["downpipe.id"] = request.id.safeText
      attributes["server.address"] = request.host.safeText
      attributes["url.full"] = request.safeURL
      if !request.tags.isEmpty { attributes["downpipe.tags"] = request.tags.map(\.safeText).sorted() }
    }
    spans[request.id] = Spans(download: span)
  }

  private mutating func end(_ id: DownloadID, _ ending: Timeline.Ending) {
    guard let ended = spans.removeValue(forKey: id) else { return }
    ended.download.updateAttributes { attributes in
      attributes["downpipe.ending"] = ending.name
      attributes["downpipe.bytes"] = ended.bytes
    }
    if case .failed(let error) = ending { record(error, in: ended.download, isFinal: true) }
    ended.download.end(at: now)
  }

  // MARK: Parts

  private mutating func beginPart(_ part: Timeline.Part, of id: DownloadID, _ event: DownloadEvent?) {
    guard let download = spans[id]?.download else { return }
    let kind: SpanKind = part == .attempt ? .client : .internal
    let span = tracer.startSpan(part.spanName, context: download.context, ofKind: kind, at: now)
    switch part {
    case .waiting(let reason): span.attributes["downpipe.reason"] = reason.rawValue
    case .step(let name): span.attributes["downpipe.step"] = name.safeText
    case .attempt: break
    }
    spans[id]?.part = span
    spans[id]?.bytesOfPart = 0
  }

  private mutating func endPart(_ part: Timeline.Part, of id: DownloadID, _ error: DownloadError?) {
    guard let download = spans[id], let span = download.part else { return }
    if part == .attempt { span.attributes["downpipe.bytes"] = download.bytesOfPart }
    if let error { record(error, in: span, isFinal: true) }
    span.end(at: now)
    spans[id]?.part = nil
  }

  // MARK: Events

  /// Adds what an event tells to the open span.
  private func note(_ event: DownloadEvent) {
    guard let span = spans[event.id]?.part else { return }
    switch event.kind {
    case .state(.waiting(let reason)):
      // The first text and, if the reason changes within its kind, the later ones.
      add("reason", ["downpipe.text": .string(reason.description.safeText)], to: span)
    case .started(let attempt, let offset):
      span.attributes["downpipe.attempt"] = attempt
      span.attributes["downpipe.resumed_from"] = offset
      add("reply", [:], to: span)
    case .restarted(let error):
      add("restarted", attributes(of: error), to: span)
    case .refused(let error):
      add("refused", attributes(of: error), to: span)
    case .attemptFailed(let error):
      // The error also ends the span, unless a mirror follows.
      add("failed", attributes(of: error), to: span)
    case .redirected(let url):
      add("redirected", ["url.full": .string(url.safeText)], to: span)
    case .linkRefreshed(let url):
      add("link refreshed", ["url.full": .string(url.safeText)], to: span)
    case .state, .progress, .stepProgress, .verified, .stepFinished, .removed, .missed:
      break
    }
  }

  private func add(_ name: String, _ attributes: SpanAttributes, to span: any Span) {
    span.addEvent(SpanEvent(name: name, at: now, attributes: attributes))
  }

  private func record(_ error: DownloadError, in span: any Span, isFinal: Bool) {
    // The cause may be another library's error, whose description has secrets.
    var error = error
    error.cause = nil
    error.message = error.message.safeText
    span.attributes.merge(attributes(of: error))
    span.recordError(error, attributes: [:], at: now)
    span.setStatus(SpanStatus(code: .error, message: error.message))
  }

  private func attributes(of error: DownloadError) -> SpanAttributes {
    var attributes: SpanAttributes = ["error.type": .string(error.code.rawValue.safeText)]
    attributes["downpipe.error"] = error.message.safeText
    if let status = error.httpStatus { attributes["http.response.status_code"] = status }
    return attributes
  }
}

extension Timeline.Part {
  fileprivate var spanName: String {
    switch self {
    case .waiting: "download.wait"
    case .attempt: "download.attempt"
    case .step: "download.step"
    }
  }
}

extension Timeline.Ending {
  fileprivate var name: String {
    switch self {
    case .finished: "finished"
    case .cancelled: "cancelled"
    case .paused: "paused"
    case .removed: "removed"
    case .failed: "failed"
    case .shutDown: "shutdown"
    case .forgotten: "forgotten"
    }
  }
}

/// A point in time for a tracer.
struct SpanInstant: TracerInstant {
  let nanosecondsSinceEpoch: UInt64

  static func < (left: Self, right: Self) -> Bool { left.nanosecondsSinceEpoch < right.nanosecondsSinceEpoch }
}

/// Converts the times of events to dates that never jump: the date of the first event plus the time since then.
struct EventClock {
  private let start: Duration

  init(_ event: DownloadEvent) {
    start = .seconds(event.date.timeIntervalSince1970) - event.instant
  }

  func instant(of event: DownloadEvent) -> SpanInstant {
    let (seconds, attoseconds) = max(.zero, start + event.instant).components
    let (nanoseconds, overflows) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    return SpanInstant(
      nanosecondsSinceEpoch: overflows ? .max : nanoseconds &+ UInt64(attoseconds / 1_000_000_000))
  }
}
