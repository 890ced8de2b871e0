import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// A file that changes on the server while it is fetched in segments: what is published is never a mix.
  ///
  /// The files differ at every byte, so that each comparison of a seam notices.
  @Suite struct SegmentSwapTests {
    /// What the server says of the new file.
    enum Tag: String, CaseIterable, Sendable {
      case same, new, weak, absent
    }

    enum Size: String, CaseIterable, Sendable {
      case same, longer, shorter
    }

    private static let size: Int64 = 3 << 20
    private static let old = DownloadFixtures.pattern(size: Int(size), seed: 4)

    private static func new(_ size: Size) -> [UInt8] {
      let changed = old.map { ~$0 }
      return switch size {
      case .same: changed
      case .longer: changed + old.prefix(400_000)
      case .shorter: Array(changed.dropLast(400_000))
      }
    }

    /// Downloads a file that is exchanged before request `number`, counted over all connections.
    ///
    /// - Parameter ignoresIfRange: The server sends the range of the new file although `If-Range` names the old one.
    private func download(
      _ tag: Tag, _ size: Size, before number: Int, ignoresIfRange: Bool, digest: FileDigest? = nil
    ) async throws -> (file: [UInt8]?, status: DownloadStatus) {
      let (old, new) = (ScriptedContent.bytes(Self.old), ScriptedContent.bytes(Self.new(size)))
      let tags: [Tag: String] = [.same: "\"1\"", .new: "\"2\"", .weak: "W/\"2\""]
      return try await withScriptedServer { request in
        let isNew = request.number >= number
        let reply = ScriptedReply.file(
          isNew ? new : old, etag: isNew ? tags[tag] : "\"1\"", ignoreIfRange: isNew && ignoresIfRange, for: request)
        // Slow enough for every connection to get a share.
        return reply.after(.throttle(bytesPerSecond: 4 << 20))
      } _: { server in
        try await download(server.url("/film"), attempts: 8, digest: digest)
      }
    }

    private func download(
      _ url: URL, attempts: Int, digest: FileDigest? = nil
    ) async throws -> (file: [UInt8]?, status: DownloadStatus) {
      let folder = try TemporaryFolder()
      let downloader = try await Downloader {
        HTTPSource()
        Segmented(connections: 4, minimumSize: 1)
        Retry(.constant(.zero, attempts: attempts))
        FileStore(folder.path)
        VerifyChecksum()
      }
      var request = DownloadRequest(url, id: "film")
      if let digest { request.expectedDigests = [digest] }
      try await downloader.add(request)
      try await downloader.waitUntilIdle()
      let status = try #require(try await downloader.status(of: "film"))
      await downloader.shutdown()
      return (try? folder.read("film"), status)
    }

    /// Which of the two files the bytes belong to, in runs.
    private static func describe(_ bytes: [UInt8], _ new: [UInt8]) -> String {
      if bytes == new { return "new" }
      if bytes == old { return "old" }
      var runs: [(word: String, start: Int)] = []
      for (index, byte) in bytes.enumerated() {
        let word =
          index < new.count && byte == new[index] ? "new" : index < old.count && byte == old[index] ? "old" : "neither"
        if runs.last?.word != word { runs.append((word, index)) }
      }
      return "a mix of \(bytes.count) bytes: \(runs.prefix(20).map { "\($0.word) from \($0.start)" })"
    }

    @Test("the file is the new one or the old one, or none", arguments: Tag.allCases, Size.allCases)
    func neverAMix(tag: Tag, size: Size) async throws {
      let new = Self.new(size)
      // At once, because they mostly wait for their servers.
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in [2, 3, 4, 5] {
          for ignoresIfRange in [false, true] {
            group.addTask {
              let (file, status) = try await download(tag, size, before: number, ignoresIfRange: ignoresIfRange)
              // What contradicts the bytes on disk is refused: other bytes under the same tag, a shorter file without a date.
              if status.error?.code == .contentChanged, file == nil { return }
              #expect(status.state.phase == .finished, "request \(number), \(ignoresIfRange): \(status.state)")
              let kind = Self.describe(file ?? [], new)
              #expect(kind == "new" || kind == "old", "request \(number), \(ignoresIfRange): \(kind)")
            }
          }
        }
        try await group.waitForAll()
      }
    }

    @Test("with the digest of the new file, it is the new one", arguments: Tag.allCases)
    func digest(tag: Tag) async throws {
      let new = Self.new(.same)
      let digest = try FileDigest.sha256(of: new)
      for number in [2, 3, 4] {
        let (file, status) = try await download(tag, .same, before: number, ignoresIfRange: true, digest: digest)
        #expect(status.state.phase == .finished, "request \(number): \(status.state)")
        let isNew = file == new
        #expect(isNew, "request \(number)")
      }
    }

    /// The old file, then the new one on every other connection, as behind a balancer whose servers are not in step.
    @Test("two servers behind one name that differ: never a mix", arguments: [Tag.same, .new])
    func servers(tag: Tag) async throws {
      let (old, new) = (ScriptedContent.bytes(Self.old), ScriptedContent.bytes(Self.new(.same)))
      try await withScriptedServer { request in
        let isNew = request.connection % 2 == 0
        return .file(
          isNew ? new : old, etag: isNew && tag == .new ? "\"2\"" : "\"1\"", ignoreIfRange: true, for: request
        ).after(.throttle(bytesPerSecond: 4 << 20))
      } _: { server in
        let (file, status) = try await download(server.url("/film"), attempts: 4)
        // It may fail, but it must not publish a mix.
        guard let file else {
          #expect(status.state.phase == .failed, "\(status.state)")
          return
        }
        let kind = Self.describe(file, Self.new(.same))
        #expect(kind == "new" || kind == "old", "\(kind)")
      }
    }
  }
}
