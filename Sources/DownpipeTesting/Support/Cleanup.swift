/// Calls `body`, then `cleanup`, whether `body` returns or throws.
package func withCleanup<R>(
  _ cleanup: () async -> Void, _ body: () async throws -> R
) async throws -> R {
  do {
    let result = try await body()
    await cleanup()
    return result
  } catch {
    await cleanup()
    throw error
  }
}
