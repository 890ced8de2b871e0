#if Postgres
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  /// Connections to a real server.
  @Suite(.endsHangs)
  struct ConnectionTests {
    private func open(
      _ cluster: PostgresCluster? = nil, limit: Duration = .seconds(60), interruption: Interruption? = nil
    ) throws -> PostgresConnection {
      let address = try (cluster ?? PostgresCluster.shared.get()).address
      return try PostgresConnection.open(
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

    @Test("Numbers are exact", arguments: [0, -0.5, 1e-300, 1_700_000_000.123_456, .infinity, .leastNonzeroMagnitude])
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
      _ = try sender.run("NOTIFY \(channel), 'a text'")
      let heard = try listener.notifications(within: .seconds(300))
      #expect(heard.map(\.channel) == [channel] && heard.map(\.text) == ["a text"])
      #expect(try listener.notifications(within: .zero).isEmpty)
    }

    @Test("An interruption ends a wait for the server, and for notifications", arguments: [true, false])
    func interrupted(runs: Bool) async throws {
      let interruption = try Interruption()
      let observer = try open()
      let process = Watched<Int64?>(nil)
      let address = try PostgresCluster.shared.get().address
      let waiting = Task {
        // Not on a thread of the cooperative pool, of which there may be two.
        try await withCheckedThrowingContinuation { continuation in
          DispatchQueue.global().async {
            continuation.resume(
              with: Result {
                let connection = try PostgresConnection.open(.init(address: address), interruptedBy: interruption)
                let own = try connection.run("SELECT pg_backend_pid()").integer(0, 0)
                process.update { $0 = own }
                if runs { return try connection.run("SELECT pg_sleep(600)").count }
                return try connection.notifications(within: .seconds(600)).count
              })
          }
        }
      }
      await process.wait { $0 != nil }
      let own = try #require(process.value)
      // Until the server has the statement.
      let state =
        "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND query LIKE '%pg_sleep(600)' AND state = 'active'"
      while runs, try observer.run(state, [.integer(own)]).integer(0, 0) == 0 { await Task.yield() }
      interruption.fire()
      let error = await #expect(throws: PostgresFault.self) { try await waiting.value }
      #expect(error?.kind == .interrupted)
    }

    @Test("Nothing is committed after an interruption") func interruptedCommit() throws {
      let interruption = try Interruption()
      let table = "t\(UInt32.random(in: 0...UInt32.max))"
      let connection = try open(interruption: interruption)
      let failure = fault {
        try connection.transaction {
          _ = try $0.run("CREATE TABLE \(table) (n bigint)")
          interruption.fire()
        }
      }
      #expect(failure?.kind == .interrupted && connection.isLost)
      #expect(try open().run("SELECT to_regclass($1)", [.text(table)]).isNull(0, 0))
    }

    @Test("A connection whose prepared statements are gone is lost") func deallocated() throws {
      let connection = try open()
      _ = try connection.run("SELECT 1")
      _ = try connection.run("DEALLOCATE ALL", prepares: false)
      #expect(fault { _ = try connection.run("SELECT 1") }?.state == "26000")
      #expect(connection.isLost)
    }

    @Test("The next host is asked if one does not accept a connection, and each at its own port") func hosts() throws {
      let folder = try PostgresCluster.shared.get().folder
      for address in [
        "postgresql://downpipe@/downpipe?host=/tmp/no-such-folder,\(folder)",
        "user=downpipe dbname=downpipe host=127.0.0.1,\(folder) port=1,5432",
        // Hosts of a URI have ports, which are empty here.
        "postgresql://downpipe@127.0.0.1:1,\(folder.replacing("/", with: "%2F"))/downpipe",
        "postgresql://downpipe@%2Ftmp%2Fno-such-folder,\(folder.replacing("/", with: "%2F"))/downpipe",
        "user=downpipe dbname=downpipe host=none,\(folder) hostaddr=127.0.0.1, port=1,",
      ] {
        let connection = try PostgresConnection.open(.init(address: address), interruptedBy: Interruption())
        #expect(try connection.run("SELECT 1").integer(0, 0) == 1)
      }
    }

    @Test("A server that accepts no changes, such as a standby, is passed over") func readOnly() throws {
      let standby = try PostgresCluster()
      let connection = try PostgresConnection.open(.init(address: standby.address), interruptedBy: Interruption())
      _ = try connection.run("ALTER SYSTEM SET default_transaction_read_only = on", prepares: false)
      try standby.control("restart")
      let folders = [standby.folder, try PostgresCluster.shared.get().folder]
      let hosts = folders.map { $0.replacing("/", with: "%2F") }.joined(separator: ",")
      let address = "postgresql://downpipe@\(hosts)/downpipe"
      for (place, folder) in [
        (address, folders[0]), (address + "?target_session_attrs=read-write", folders[1]),
      ] {
        let connection = try PostgresConnection.open(.init(address: place), interruptedBy: Interruption())
        #expect(try connection.run("SHOW unix_socket_directories").text(0, 0) == folder)
      }
    }

    @Test(
      "A server that is missing, a database or a user that is unknown: each says what to do",
      arguments: [
        ("postgresql://downpipe@/downpipe?host=/tmp/no-such-folder", "no-such-folder"),
        ("postgresql://downpipe@127.0.0.1:1/downpipe", "port 1"),
        ("postgresql://downpipe@/missing?host=", "missing"), ("postgresql://stranger@/downpipe?host=", "stranger"),
        ("no = such option", "percent-encoded"), ("postgresql://%zz", "percent-encoded"),
      ])
    func unreachable(_ address: String, says word: String) throws {
      let folder = try PostgresCluster.shared.get().folder
      let address = address.hasSuffix("host=") ? address + folder : address
      let failure = fault { _ = try PostgresConnection.open(.init(address: address), interruptedBy: Interruption()) }
      let message = try #require(failure).downloadError.message
      #expect(message.contains(word), "\(message)")
    }

    @Test("A password is in no message") func secrets() throws {
      let addresses = [
        "postgresql://u:s3cret@127.0.0.1:1/d", "host=127.0.0.1 port=1 password=s3cret", "postgresql://u:s3cret@:x",
        "postgresql://u:%s3cret@h/d", "postgresql://u:s3cret/more@h/d", "postgresql://u:more@s3cret@h/d",
        "password=a s3cret", "postgresql://u:s3cret@[::1/d", "postgresql://s3cret:/@h/d",
      ]
      for address in addresses {
        let failure = fault { _ = try PostgresConnection.open(.init(address: address), interruptedBy: Interruption()) }
        #expect(try !"\(#require(failure).downloadError)".contains("s3cret"))
      }
    }
  }
#endif
