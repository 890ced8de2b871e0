import DownpipeCore
import DownpipeURLSession

/// Calls `body` with the session of a source and stops the session afterwards.
func withSource<R>(
  _ configuration: URLSessionSource.Configuration = .ephemeral, _ body: (any SourceSession) async throws -> R
) async throws -> R {
  let source = try await URLSessionSource(configuration).start(in: SourceContext())
  do {
    let result = try await body(source)
    await source.stop()
    return result
  } catch {
    await source.stop()
    throw error
  }
}
