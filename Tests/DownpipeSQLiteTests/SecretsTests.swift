#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeSQLite
  import DownpipeTesting
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  /// A ledger keeps what the download needs to continue, and no secret anywhere else.
  @Suite(.endsHangs)
  struct SecretsTests {
    /// The link, its header fields and the request as it was added: with a fresh process the download continues from
    /// these alone.
    private static let link: Set<String> = ["url", "headers", "mirrors", "added"]

    /// Returns the tables and columns in which a text occurs.
    private func columns(with text: String, in path: String) throws -> Set<String> {
      let database = try DatabaseQueue(path: path)
      defer { try? database.close() }
      return try database.read { database in
        var found: Set<String> = []
        let tables = try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
        for table in tables {
          for row in try Row.fetchAll(database, sql: "SELECT * FROM \"\(table)\"") {
            for (column, value) in row where value.description.contains(text) { found.insert("\(table).\(column)") }
          }
        }
        return found
      }
    }

    @Test(arguments: [true, false])
    func onlyTheLinkHasSecrets(_ succeeds: Bool) async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let url = try #require(URL(string: "https://user:CANARY@a.test/film?token=CANARY#token=CANARY"))
        let mirror = try #require(URL(string: "https://user:CANARY@b.test/film?X-Amz-Signature=CANARY"))
        let hop = try #require(URL(string: "https://user:CANARY@c.test/film?sig=CANARY"))
        let bytes = DownloadFixtures.pattern(size: 50_000)
        let broken = NSError(
          domain: "transport", code: 1, userInfo: [NSLocalizedDescriptionKey: "cannot read \(mirror.absoluteString)"])
        let served = FakeSource.Script(bytes).with { $0.redirects = [hop] }
        let source = FakeSource([
          url: [succeeds ? served : served.failing(after: 30_000, with: broken), .status(404)],
          mirror: [.failingToOpen(broken)],
        ])
        let downloader = try await Downloader {
          source
          FakeStorage()
          SQLiteLedger(path)
          Retry(.constant(.zero, attempts: 2))
        }
        let request = DownloadRequest(
          url, id: "a", mirrors: [mirror]
        ).with(
          \.headers, ["Authorization": "Bearer CANARY", "Cookie": "s=CANARY", "X-Key": "CANARY", "User-Agent": "u"])
        let result = await Result(catching: { try await downloader.add(request).value })
        let hasFinished = (try? result.get()) != nil
        #expect(hasFinished == succeeds)
        await downloader.shutdown()

        let found = try columns(with: "CANARY", in: path)
        #expect(found.isSubset(of: Set(Self.link.map { "download.\($0)" })), "\(found.sorted())")
        #expect(found.contains("download.headers"))
        let ledger = try await SQLiteLedger(path).open()
        let record = try #require(try await ledger.record("a"))
        #expect(record.request.headers == request.headers && record.request.url == url)
        #expect((record.error == nil) == succeeds)
        if let error = record.error { #expect(!"\(error)".contains("CANARY")) }
        try await ledger.close()
      }
    }
  }

  extension Result where Failure == any Error {
    /// The result of an asynchronous function.
    fileprivate init(catching body: () async throws -> Success) async {
      do { self = .success(try await body()) } catch { self = .failure(error) }
    }
  }
#endif
