import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// What the comparison of the last bytes proves, and what it does not.
  @Suite struct ServerMatrixOverlapTests {
    /// An overlap proves the bytes that it compares, and no others: ``ResumeValidation/strict`` and digests prove the
    /// rest.
    @Test("a change before the compared bytes, under any validator", arguments: [nil, "W/\"v1\"", "\"v1\""])
    func changeBeforeTheOverlap(tag: String?) async throws {
      var changed = ServerMatrix.file
      changed[5] ^= 0xFF
      let bytes = changed
      let digest = try FileDigest.sha256(of: bytes)
      func result(_ run: ServerMatrixRun) async throws -> [UInt8] {
        try await run.perform { request in
          request.number == 1
            ? ServerMatrix.broken(tag.map { ["ETag": $0] } ?? []) : ServerMatrix.good(bytes, tag, for: request)
        }.file
      }
      #expect(try await result(ServerMatrixRun(validation: .overlap(10))) == ServerMatrix.file, "nothing can tell")
      #expect(try await result(ServerMatrixRun(validation: .overlap(40))) == bytes)
      #expect(try await result(ServerMatrixRun(validation: .strict)) == bytes)
      #expect(try await result(ServerMatrixRun(validation: .digest)) == bytes)
      for validation in [ResumeValidation.digest, .overlap(10)] {
        var run = ServerMatrixRun(validation: validation, verifiesChecksums: true)
        run.resumed = [.digestMismatch]
        run.change = { $0.expectedDigests = [digest] }
        #expect(try await result(run) == bytes)
      }
    }
  }
}
