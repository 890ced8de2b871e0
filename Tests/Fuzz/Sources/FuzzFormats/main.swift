import CFuzzer
import Foundation
import FuzzSupport

// libFuzzer calls back with each input. `DOWNPIPE_FORMAT` chooses what the inputs are; with `DOWNPIPE_SEEDS` the process
// writes the first inputs into that folder.
let environment = ProcessInfo.processInfo.environment
guard let format = Format(rawValue: environment["DOWNPIPE_FORMAT"] ?? "") else {
  note("DOWNPIPE_FORMAT is not one of \(Format.allCases.map(\.rawValue).joined(separator: ", "))")
  exit(2)
}
if let folder = environment["DOWNPIPE_SEEDS"] { exit(format.writeSeeds(to: URL(filePath: folder)) ? 0 : 1) }
FormatChecks.current = FormatChecks(format)
var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
exit(LLVMFuzzerRunDriver(&count, &arguments) { test($0, $1) })
