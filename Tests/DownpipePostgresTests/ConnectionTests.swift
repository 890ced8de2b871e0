#if Postgres
  import DownpipeCore
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// Connections to a real server.
  @Suite(.endsHangs)
  struct ConnectionTests {
    private func open(
      _ cluster: PostgresCluster? = nil, limit: Duration = .seconds(60), interruption: Interruption? = nil
    ) throws -> PostgresConnection {
      let address = try (cluster ?? PostgresCluster.shared.get()).address
      return try PostgresConnection(
        .init(address: address, statementLimit: limit), interruptedBy: interruption ?? Interruption())
    }

    /// The fault that an operation throws.
    private func fault(_ operation: () throws -> Void) -> PostgresFault? {
      do { try operation() } catch { return error as? PostgresFault }
      return nil
    }

    @Test(
      "Values come back as they were sent",
      arguments: ["", "plain", "quote ' and \\ and \"", "ü, 日本, 👩‍👩‍👧", "line\nline\ttab", "$1; DROP TABLE a"],
      [false, true])
    func texts(_ text: String, prepares: Bool) throws {
      let connection = try open()
      for _ in 0..<2 {
        let rows = try connection.run(
          "SELECT $1::text, $2::bigint, $3::float8, $4::bytea, $5::boolean, $6::text",
          [
            .text(text), .integer(.min), .real(0.1), .bytes(Array(0...255)), .boolean(true), .null,
          ], prepares: prepares)
        #expect(rows.count == 1 && rows.text(0, 0) == text && rows.integer(0, 1) == .min && rows.real(0, 2) == 0.1)
        #expect(rows.bytes(0, 3) == Array(0...255) && rows.boolean(0, 4) == true && rows.isNull(0, 5))
        #expect(rows.text(0, 5) == nil && rows.bytes(0, 0) == nil)
      }
    }

    @Test("Numbers are exact", arguments: [0, -0.5, 1e-300, 1_700_000_000.123_456, .infinity, 5e-324])
    func reals(_ value: Double) throws {
      #expect(try open().run("SELECT $1::float8", [.real(value)]).real(0, 0) == value)
    }

    @Test("A text with a NUL is refused before it is cut") func nul() throws {
      let connection = try open()
      #expect(fault { _ = try connection.run("SELECT $1::text", [.text("a\0b")]) }?.kind == .refused)
      #expect(try connection.run("SELECT 1").integer(0, 0) == 1)
    }

    @Test("A megabyte goes there and back") func large() throws {
      let bytes = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      #expect(try open().run("SELECT $1::bytea", [.bytes(bytes)]).bytes(0, 0) == bytes)
    }

    @Test("More texts than are prepared are run all the same") func manyTexts() throws {
      let connection = try open()
      for number in 0..<400 { #expect(try connection.run("SELECT \(number)").integer(0, 0) == Int64(number)) }
      #expect(try connection.run("SELECT count(*) FROM pg_prepared_statements").integer(0, 0) == 300)
    }

    @Test("An error is the server's, and the connection goes on") func errors() throws {
      let connection = try open()
      let failure = fault { _ = try connection.run("SELECT * FROM nothing") }
      #expect(failure?.state == "42P01" && failure?.kind == .refused && failure?.message.contains("nothing") == true)
      #expect(try connection.run("SELECT 1").integer(0, 0) == 1)
      #expect(failure?.downloadError.code == .ledger)
    }

    @Test("A statement that takes too long is ended by the server") func slow() throws {
      let connection = try open(limit: .milliseconds(50))
      let failure = fault { _ = try connection.run("SELECT pg_sleep(600)") }
      #expect(failure?.state == "57014" && failure?.downloadError.message.contains("limit") == true)
      #expect(connection.isAlive)
    }

    @Test("A statement that copies rows does not hang") func copying() throws {
      let connection = try open()
      #expect(fault { _ = try connection.run("COPY (SELECT 1) TO STDOUT") }?.kind == .refused)
      #expect(connection.isLost)
    }

    @Test("A transaction is done as a whole or not at all") func transactions() throws {
      let connection = try open()
      _ = try connection.run("CREATE TEMP TABLE t (n bigint)")
      try connection.transaction { _ = try $0.run("INSERT INTO t VALUES (1)") }
      struct Refusal: Error {}
      #expect(throws: Refusal.self) {
        try connection.transaction {
          _ = try $0.run("INSERT INTO t VALUES (2)")
          throw Refusal()
        }
      }
      #expect(fault { try connection.transaction { _ = try $0.run("INSERT INTO t VALUES ('x')") } }?.state == "22P02")
      // An error that is not passed on: the commit would be a rollback.
      let failure = fault {
        try connection.transaction {
          _ = try $0.run("INSERT INTO t VALUES (3)")
          _ = try? $0.run("SELECT * FROM nothing")
        }
      }
      #expect(failure?.kind == .refused)
      #expect(try connection.run("SELECT n FROM t").integer(0, 0) == 1)
      #expect(try connection.run("SELECT count(*) FROM t").integer(0, 0) == 1)
    }

    @Test("A notification arrives, once") func notifications() throws {
      let (listener, sender) = (try open(), try open())
      let channel = "c\(UInt32.random(in: 0...UInt32.max))"
      _ = try listener.run("LISTEN \(channel)")
      #expect(try listener.notifications(within: .zero).isEmpty)
      _ = try sender.run("NOTIFY \(channel)")
      #expect(try listener.notifications(within: .seconds(300)) == [channel])
      #expect(try listener.notifications(within: .zero).isEmpty)
    }

    @Test("An interruption ends a wait for the server, and for notifications") func interrupted() async throws {
      let interruption = try Interruption()
      let address = try PostgresCluster.shared.get().address
      for sql in ["SELECT pg_sleep(600)", ""] {
        let connection = try PostgresConnection(.init(address: address), interruptedBy: Interruption())
        _ = connection
        let waiting = Task.detached {
          let connection = try PostgresConnection(.init(address: address), interruptedBy: interruption)
          if sql.isEmpty { return try connection.notifications(within: .seconds(600)).count }
          return try connection.run(sql).count
        }
        interruption.fire()
        await #expect(throws: PostgresFault.self) { try await waiting.value }
      }
    }

    @Test(
      "A server that is missing, a database or a user that is unknown: each says what to do",
      arguments: [
        ("postgresql://downpipe@/downpipe?host=/tmp/no-such-folder", "address"),
        ("postgresql://downpipe@127.0.0.1:1/downpipe", "runs"),
        ("postgresql://downpipe@/missing?host=", "missing"), ("postgresql://stranger@/downpipe?host=", "stranger"),
        ("no = such option", "address"), ("postgresql://%zz", "address"),
      ])
    func unreachable(_ address: String, says word: String) throws {
      let folder = try PostgresCluster.shared.get().folder
      let address = address.hasSuffix("host=") ? address + folder : address
      let failure = fault { _ = try PostgresConnection(.init(address: address), interruptedBy: Interruption()) }
      let message = try #require(failure).downloadError.message
      #expect(message.contains(word), "\(message)")
    }

    @Test("A password is in no message") func secrets() throws {
      let addresses = [
        "postgresql://u:s3cret@127.0.0.1:1/d", "host=127.0.0.1 port=1 password=s3cret", "postgresql://u:s3cret@:x",
      ]
      for address in addresses {
        let failure = fault { _ = try PostgresConnection(.init(address: address), interruptedBy: Interruption()) }
        #expect(try !"\(#require(failure).downloadError)".contains("s3cret"))
      }
    }
  }
#endif
