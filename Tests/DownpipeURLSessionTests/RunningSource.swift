import DownpipeCore
import DownpipeTesting
import DownpipeURLSession

/// Calls `body` with the session of a source and stops the session afterwards.
func withSource<R>(
  _ configuration: URLSessionSource.Configuration = .ephemeral, _ body: (any SourceSession) async throws -> R
) async throws -> R {
  let session = try await URLSessionSource(configuration).start(in: SourceContext())
  return try await withCleanup {
    await session.stop()
  } _: {
    try await body(session)
  }
}
