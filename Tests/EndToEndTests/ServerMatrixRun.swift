import Downpipe
import DownpipeTesting
import Foundation
import Synchronization
import Testing

/// Downloads over real sockets into a real folder. The script of the server sees the bytes on disk at each request.
struct ServerMatrixRun {
  /// The result of one download.
  struct Result: Sendable {
    var trace: ServerMatrixTrace
    /// The published file.
    var file: [UInt8]
    var status: DownloadStatus
    var requests: [ScriptedRequest]
    /// The bytes on disk at each request.
    var partials: [[UInt8]]
  }

  struct Seen: Sendable {
    var request: ScriptedRequest
    var partial: [UInt8]
  }

  var validation = ResumeValidation.overlap(10)
  var usesSQLite = false
  var verifiesChecksums = false
  var concurrent = 8
  var attempts = 5
  /// Failures that the table gives up, and after which the test resumes the download.
  var resumed: Set<DownloadError.Code> = [.httpStatus]
  /// Whether the test restarts downloads that have failed because the server has something else now.
  var restarts = true
  /// Refreshes an expired link.
  var refresh: (@Sendable (URL) -> URL)?
  /// Changes the request.
  var change: @Sendable (inout DownloadRequest) throws -> Void = { _ in }

  /// Downloads all paths at the same time. After failures that the table gives up, resumes a few times.
  ///
  /// - Parameters:
  ///   - ids: the downloads; each has the path `/id` and all paths that start with it.
  ///   - script: replies to a request.
  func perform(
    _ ids: [DownloadID], script: @escaping @Sendable (DownloadID, ScriptedRequest) -> ScriptedReply
  ) async throws -> [DownloadID: Result] {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let seen = Mutex<[DownloadID: [Seen]]>([:])
    let observer = RecordingObserver()
    let options = DownloaderOptions(resumeValidation: validation)
    return try await withScriptedServer { request in
      let id = DownloadID(String(request.path.split(separator: "/").first ?? ""))
      let partial = Self.partial(of: id, in: folder)
      seen.withLock { $0[id, default: []].append(Seen(request: request, partial: partial)) }
      return script(id, request)
    } _: { server in
      let downloader = try await Downloader(options: options) {
        HTTPSource()
        Limits(concurrent: concurrent)
        Retry(.constant(.zero, attempts: attempts))
        if let refresh { RefreshURL { FreshLink(refresh($0.request.url)) } }
        FileStore(folder.path("out"))
        #if SQLite
          if usesSQLite { SQLiteLedger(folder.path("ledger.sqlite")) }
        #endif
        if verifiesChecksums { VerifyChecksum() }
        observer
      }
      try await downloader.add(
        contentsOf: ids.map { id in
          var request = DownloadRequest(server.url("/\(id)"), id: id)
          request.destination.name = "\(id)"
          try change(&request)
          return request
        })
      let statuses = try await Self.finish(ids, of: downloader, resuming: resumed, restarting: restarts)
      await downloader.shutdown()
      await observer.wait { _ in false }
      let seen = seen.withLock { $0 }
      var results: [DownloadID: Result] = [:]
      for status in statuses {
        let id = status.id
        results[id] = Result(
          trace: ServerMatrixTrace(
            notes: Self.notes(observer.events(of: id)),
            asked: seen[id, default: []].map {
              .init(
                range: $0.request.headers["Range"], ifRange: $0.request.headers["If-Range"],
                onDisk: Int64($0.partial.count))
            }),
          file: (try? folder.read("out/\(id)")) ?? [], status: status, requests: seen[id, default: []].map(\.request),
          partials: seen[id, default: []].map(\.partial))
      }
      if statuses.allSatisfy({ $0.state.phase == .finished }) {
        #expect(Self.partials(in: folder).isEmpty, "a finished download leaves no partial")
      }
      return results
    }
  }

  private static func finish(
    _ ids: [DownloadID], of downloader: Downloader, resuming codes: Set<DownloadError.Code>,
    restarting: Bool
  ) async throws -> [DownloadStatus] {
    var statuses: [DownloadStatus] = []
    for _ in 0..<4 {
      try await downloader.waitUntilIdle()
      statuses = []
      for id in ids { statuses.append(try #require(try await downloader.status(of: id))) }
      var isOver = true
      for status in statuses {
        guard case .failed(let error) = status.state else { continue }
        if codes.contains(error.code) {
          try await downloader.resume(status.id)
        } else if restarting, error.code == .contentChanged {
          try await downloader.restart(status.id)
        } else {
          continue
        }
        isOver = false
      }
      if isOver { break }
    }
    return statuses
  }

  static func notes(_ events: [DownloadEvent.Kind]) -> [ServerMatrixTrace.Note] {
    events.compactMap { event in
      switch event {
      case .refused(let error): .refused(error.code)
      case .restarted(let error): .restarted(error.code)
      case .attemptFailed(let error): .failed(error.code, error.httpStatus)
      default: nil
      }
    }
  }

  // MARK: The disk

  private static func partials(in folder: TemporaryFolder) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder.path("out/.downpipe/partials"))) ?? [])
      .filter { $0.hasSuffix(".part") }
  }

  /// Returns the bytes of the partial of a download; none without a partial.
  private static func partial(of id: DownloadID, in folder: TemporaryFolder) -> [UInt8] {
    guard let name = partials(in: folder).first(where: { $0.hasPrefix("\(id).") }) else { return [] }
    return (try? folder.read("out/.downpipe/partials/\(name)")) ?? []
  }
}

extension ServerMatrixRun {
  /// Downloads one file.
  func perform(script: @escaping @Sendable (ScriptedRequest) -> ScriptedReply) async throws -> Result {
    try #require(try await perform(["file"]) { _, request in script(request) }["file"])
  }

  /// Downloads the file of each cell.
  func perform(_ cells: [ServerMatrix.Cell]) async throws -> [DownloadID: Result] {
    let cells = Dictionary(uniqueKeysWithValues: cells.map { ($0.id, $0) })
    return try await perform(Array(cells.keys)) { id, request in
      guard let cell = cells[id] else { return .status(500) }
      return switch request.number {
      case 1: cell.first
      case 2: cell.second(to: request)
      default: cell.later(to: request)
      }
    }
  }
}

extension ServerMatrix.Cell {
  /// Returns which of the two files the bytes belong to, in runs.
  func describe(_ bytes: [UInt8]) -> String {
    var runs: [(String, Int)] = []
    for (byte, (new, old)) in zip(bytes, zip(beyond, before)) {
      let word = byte == new ? "new" : byte == old ? "old" : "neither"
      if runs.last?.0 == word { runs[runs.count - 1].1 += 1 } else { runs.append((word, 1)) }
    }
    return "\(bytes.count) bytes: " + runs.prefix(8).map { "\($0.1) \($0.0)" }.joined(separator: ", ")
  }
}

extension FileDigest {
  static func sha256(of bytes: [UInt8]) throws -> FileDigest {
    var computation = try DigestComputation(.sha256)
    computation.update(bytes.span.bytes)
    return computation.finalize()
  }

  /// The digest in the form of `Repr-Digest` (RFC 9530 §3).
  var field: String { "\(algorithm.name)=:\(Data(bytes).base64EncodedString()):" }
}
