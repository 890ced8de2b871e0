#if LIBCURL || AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Testing

  /// An answer that is no sound response, and the code of the error that it causes.
  struct HostileAnswer: Sendable, CustomTestStringConvertible {
    let testDescription: String
    private let steps: [ScriptedReply.Step]
    private let code: DownloadError.Code

    init(_ name: String, _ text: String, _ code: DownloadError.Code) {
      self.init(name, [.send(text), .close], code)
    }

    init(_ name: String, _ steps: [ScriptedReply.Step], _ code: DownloadError.Code) {
      testDescription = name
      self.steps = steps
      self.code = code
    }

    /// Checks that the source reports the error and keeps no connection.
    func endsWithAClearError(
      _ source: any SourceSession, _ location: SourceLocation = #_sourceLocation
    ) async throws {
      try await withScriptedServer { _ in
        ScriptedReply(steps)
      } _: { server in
        let error = await downloadError { try await source.fetch(server.url()) }
        let text = error.map(String.init(describing:)) ?? "no error"
        #expect(error?.code == code, "\(text)", sourceLocation: location)
        #expect((error?.message.count ?? 0) > 20, sourceLocation: location)
        try await server.until { $0.openConnections == 0 }
      }
    }
  }
#endif
