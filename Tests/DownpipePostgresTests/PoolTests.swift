#if Postgres
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  /// Several connections, and servers that come and go.
  @Suite(.endsHangs)
  struct PoolTests {
    private func pool(_ address: String, _ count: Int) throws -> PostgresPool {
      try PostgresPool(.init(address: address), connections: count)
    }

    private func backend(_ pool: PostgresPool) async throws -> Int64? {
      try await pool.withConnection { try $0.run("SELECT pg_backend_pid()").integer(0, 0) }
    }

    @Test("Connections are kept, and no more are opened than are allowed") func reuse() async throws {
      let pool = try pool(PostgresCluster.shared.get().address, 3)
      let processes = try await withThrowingTaskGroup(of: Int64?.self) { group in
        for _ in 0..<100 { group.addTask { try await backend(pool) } }
        return try await group.reduce(into: Set<Int64?>()) { $0.insert($1) }
      }
      #expect((1...3).contains(processes.count) && !processes.contains(nil))
      #expect(try await processes.contains(backend(pool)))
      pool.close()
    }

    @Test("A call that waits for a connection can be cancelled") func cancelled() async throws {
      let pool = try pool(PostgresCluster.shared.get().address, 1)
      let (begun, end) = (Watched(false), DispatchSemaphore(value: 0))
      let holder = Task {
        try await pool.withConnection { _ in
          begun.update { $0 = true }
          end.wait()
        }
      }
      await begun.wait { $0 }
      let waiter = Task { try await backend(pool) }
      while pool.waiting == 0 { await Task.yield() }
      waiter.cancel()
      await #expect(throws: CancellationError.self) { try await waiter.value }
      end.signal()
      try await holder.value
      #expect(try await backend(pool) != nil)
      pool.close()
    }

    @Test("Closing ends a statement and refuses others") func closed() async throws {
      let pool = try pool(PostgresCluster.shared.get().address, 1)
      let begun = Watched(false)
      let long = Task {
        try await pool.withConnection { connection in
          begun.update { $0 = true }
          return try connection.run("SELECT pg_sleep(600)").count
        }
      }
      await begun.wait { $0 }
      let waiter = Task { try await backend(pool) }
      pool.close()
      for task in [Task { _ = try await long.value }, Task { _ = try await waiter.value }] {
        let error = await #expect(throws: PostgresFault.self) { try await task.value }
        #expect(error?.kind == .interrupted)
      }
      await #expect(throws: PostgresFault.self) { try await backend(pool) }
    }

    @Test("Connections are opened again after the server was restarted, and a lost commit is told apart")
    func restart() async throws {
      let cluster = try PostgresCluster()
      let pool = try pool(cluster.address, 1)
      let first = try await backend(pool)
      try cluster.control("restart")
      #expect(try await backend(pool) != first)
      // A server that ends between the statement and the commit.
      let error = await #expect(throws: PostgresFault.self) {
        try await pool.withConnection { connection in
          try connection.transaction {
            _ = try $0.run("CREATE TABLE t (n bigint)")
            try cluster.control("stop")
          }
        }
      }
      #expect(error?.kind == .commitUnknown, "\(error?.message ?? "")")
      let refused = await #expect(throws: PostgresFault.self) { try await backend(pool) }
      #expect(refused?.kind == .unreachable)
      try cluster.control("start")
      // The pool rests after the failure; this test does not wait for it.
      let other = try self.pool(cluster.address, 1)
      #expect(try await backend(other) != nil)
      withExtendedLifetime(cluster) { for pool in [pool, other] { pool.close() } }
    }

    @Test("A connection that an administrator has ended is replaced") func terminated() async throws {
      let address = try PostgresCluster.shared.get().address
      let (pool, other) = (try pool(address, 1), try pool(address, 1))
      let first = try await backend(pool)
      _ = try await other.withConnection {
        try $0.run("SELECT pg_terminate_backend($1::int)", [.integer(first ?? 0)]).count
      }
      // It ends a moment later: until then the old one may still answer.
      var second = first
      while second == first { second = (try? await backend(pool)) ?? first }
      #expect(second != nil)
      for pool in [pool, other] { pool.close() }
    }
  }
#endif
