import ArgumentParser
import Foundation

/// Which server `downpipe get` hands its downloads over to.
struct HandOverOptions: ParsableArguments {
  @Option(
    name: .customLong("to"),
    help: ArgumentHelp(
      "Hand the downloads over to the “downpipe serve” or aria2 at this address, such as http://nas:6800, and end. --output, "
        + "--mirror, --header, --user-agent, --referer, --checksum and --directory go with them.", valueName: "url"))
  var server: String?

  @Option(
    name: .customLong("to-secret-file"),
    help: ArgumentHelp("Read the token for --to from this file.", valueName: "file"), completion: .file())
  var secretFile: String?

  func validate() throws {
    if secretFile != nil, server == nil { throw ValidationError("--to-secret-file needs --to") }
  }
}
