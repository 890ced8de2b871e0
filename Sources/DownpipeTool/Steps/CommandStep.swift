import Downpipe
import DownpipeCommand

/// Runs the program that a request names.
struct CommandStep: UniversalPostProcessor {
  var name: String { RequestSteps.commandStep }
  var summary: String { "as each request says" }
  /// The program must not change the file; see `RunCommand`.
  var keepsContent: Bool { true }

  let rule: ProgramRule

  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    guard let command = RequestSteps(context.request).command else {
      throw DownloadError.unreadableSettings("--on-finish")
    }
    try rule.check(command)
    #if Command
      var arguments = command.arguments.map { $0 == FinishCommand.path ? RunCommand.Argument.path : .init($0) }
      if !arguments.contains(.path) { arguments.append(.path) }
      return try await RunCommand(command.program, arguments: arguments, timeLimit: Self.timeLimit)
        .process(artifact, in: context)
    #else
      throw DownloadError(
        .processing,
        "the file was added with --on-finish, and this downpipe cannot start programs: build it with the trait Command")
    #endif
  }

  /// A day: the user is there to end it.
  private static let timeLimit = Duration.seconds(86_400)
}
