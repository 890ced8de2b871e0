import Downpipe
import Foundation
import Synchronization

/// Writes down what each stage does to each download: an observer, as any pipeline may have one.
struct Diary: Observer {
  /// What one stage did.
  struct Entry: Sendable, Hashable {
    /// The stage.
    var stage: String
    /// What it did.
    var text: String
  }

  /// The pages, which outlive the run.
  final class Pages: Sendable {
    private let entries = Mutex<[DownloadID: [Entry]]>([:])

    /// What happened to a download.
    func entries(of id: DownloadID) -> [Entry] { entries.withLock { $0[id] ?? [] } }

    fileprivate func write(_ entry: Entry, of id: DownloadID) {
      entries.withLock { $0[id, default: []].append(entry) }
    }
  }

  /// Where it is written.
  let pages = Pages()

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    for await event in events {
      if let entry = Self.entry(event.kind) { pages.write(entry, of: event.id) }
    }
  }

  /// What an event says about a stage; `nil` for what is no news.
  static func entry(_ event: DownloadEvent.Kind) -> Entry? {
    switch event {
    case .started(attempt: 1, from: 0): Entry(stage: "HTTPSource", text: "asks for the file")
    case .started(let attempt, from: 0): Entry(stage: "HTTPSource", text: "attempt \(attempt), from the beginning")
    case .started(let attempt, let from):
      Entry(stage: "HTTPSource", text: "attempt \(attempt), resumes at byte \(grouped(from))")
    case .refused(let error): Entry(stage: "ResumePlan", text: "goes on in another way: \(error.message)")
    case .restarted(let error): Entry(stage: "ResumePlan", text: "begins again: \(error.message)")
    case .attemptFailed(let error): Entry(stage: error.stage ?? "engine", text: "fails: \(error.message)")
    case .redirected(let url): Entry(stage: "HTTPSource", text: "is sent to \(url)")
    case .linkRefreshed(let url): Entry(stage: "RefreshURL", text: "goes on at \(url)")
    case .stepFinished(name: "VerifyChecksum"): Entry(stage: "VerifyChecksum", text: "the digest is right")
    case .stepFinished(name: "Gunzip"): Entry(stage: "Gunzip", text: "unpacked")
    case .stepFinished(let name): Entry(stage: name, text: "done")
    case .state(.waiting(.retry(let date, _))):
      Entry(
        stage: "Retry", text: "another attempt in \(Formatting.seconds(.seconds(date.timeIntervalSinceNow)))")
    case .state(.finished(let artifact)):
      Entry(stage: "FileStore", text: "publishes \(artifact.name), \(artifact.size.formatted())")
    case .state(.failed): Entry(stage: "Retry", text: "gives up; the file is not published")
    case .state, .progress, .removed: nil
    }
  }

  /// A number with its thousands apart.
  static func grouped(_ number: Int64) -> String {
    var digits = Array(String(number))
    for position in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: position) }
    return String(digits)
  }
}
