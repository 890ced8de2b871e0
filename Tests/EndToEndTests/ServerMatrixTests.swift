import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// Every cell of the table of `ResumePlan` over real sockets. The file changes between the first reply and the
  /// second: no file is ever a mix, each refusal has its own code, and bytes on disk stay as long as they are useful.
  @Suite struct ServerMatrixTests {
    @Test(arguments: ServerMatrix.OnDisk.allCases, ServerMatrix.Answer.allCases)
    func row(onDisk: ServerMatrix.OnDisk, answer: ServerMatrix.Answer) async throws {
      try await check(ServerMatrix.cells(onDisk, answer))
    }

    /// At most what the source buffers before its back-pressure stops the network: a connection that ends discards
    /// bytes that were not read yet.
    @Test(
      "bodies of many kilobytes", arguments: ServerMatrix.OnDisk.allCases,
      [
        ServerMatrix.Answer.whole200, .right206, .shortEnd206, .part206, .wrongTotal206, .multipart206, .unavailable503,
      ])
    func largeRow(onDisk: ServerMatrix.OnDisk, answer: ServerMatrix.Answer) async throws {
      try await check(ServerMatrix.cells(onDisk, answer, kinds: [.tag], unit: 400))
    }

    @Test(
      "the same with a ledger on disk", arguments: ServerMatrix.OnDisk.allCases,
      [ServerMatrix.Answer.whole200, .right206, .wrongStart206, .unsatisfiable416, .notFound404])
    func rowInSQLite(onDisk: ServerMatrix.OnDisk, answer: ServerMatrix.Answer) async throws {
      let run = ServerMatrixRun(validation: .overlap(10), usesSQLite: true)
      try await check(ServerMatrix.cells(onDisk, answer, kinds: [.tag]), run)
    }

    // MARK: Other policies

    @Test("without a strong validator the whole file is requested", arguments: ServerMatrix.OnDisk.allCases, sample)
    func strict(onDisk: ServerMatrix.OnDisk, answer: ServerMatrix.Answer) async throws {
      try await check(ServerMatrix.cells(onDisk, answer), policy: .strict)
    }

    @Test("without a digest, only the compared bytes are proven", arguments: ServerMatrix.OnDisk.allCases, sample)
    func missingDigest(onDisk: ServerMatrix.OnDisk, answer: ServerMatrix.Answer) async throws {
      var run = ServerMatrixRun()
      run.validation = .digest
      run.verifiesChecksums = true
      try await check(ServerMatrix.cells(onDisk, answer, kinds: [.tag]), policy: .strict, run)
    }

    @Test("a digest proves the bytes that were not compared", arguments: ServerMatrix.OnDisk.allCases, sample)
    func digest(onDisk: ServerMatrix.OnDisk, answer: ServerMatrix.Answer) async throws {
      let cells = ServerMatrix.cells(onDisk, answer, kinds: [.tag])
      let digests = try Dictionary(uniqueKeysWithValues: cells.map { ($0.id, try FileDigest.sha256(of: $0.now)) })
      var run = ServerMatrixRun()
      run.validation = .digest
      run.verifiesChecksums = true
      run.resumed = [.httpStatus, .digestMismatch]
      run.change = { request in request.expectedDigests = digests[request.id].map { [$0] } ?? [] }
      let results = try await run.perform(cells)
      for cell in cells {
        let result = try #require(results[cell.id], "\(cell)")
        #expect(result.file == cell.now, "\(cell): \(cell.describe(result.file)); \(result.trace.notes)")
        #expect(result.status.state.phase == .finished, "\(cell): \(result.status.state)")
      }
    }

    static let sample: [ServerMatrix.Answer] = [
      .whole200, .right206, .wrongStart206, .unsatisfiable416, .notFound404, .unavailable503,
    ]

    // MARK: Checking

    private func check(
      _ cells: [ServerMatrix.Cell], policy: ServerMatrixClient.Policy? = nil, _ run: ServerMatrixRun? = nil
    ) async throws {
      let overlap = 10 * cells[0].unit
      let policy = policy ?? .overlap(overlap)
      let run = run ?? ServerMatrixRun(validation: policy == .strict ? .strict : .overlap(overlap))
      let results = try await run.perform(cells)
      for cell in cells {
        let result = try #require(results[cell.id], "\(cell)")
        #expect(cell.outcome != nil, "\(cell) has no row")
        let client = ServerMatrixClient(cell, policy)
        let file = client.keepsWhatIsOnDisk ? Array(cell.before[..<Int(cell.have)]) : cell.now
        #expect(result.file == file, "\(cell): \(cell.describe(result.file)); \(result.trace.notes)")
        #expect(result.status.state.phase == .finished, "\(cell): \(result.status.state)")
        #expect(result.trace.notes == client.trace.notes, "\(cell)")
        #expect(result.trace.asked == client.trace.asked, "\(cell)")
        #expect(result.partials.allSatisfy { cell.before.starts(with: $0) }, "\(cell)")
        #expect(result.requests.allSatisfy { $0.headers.values("Accept-Encoding") == ["identity"] }, "\(cell)")
      }
    }
  }
}
