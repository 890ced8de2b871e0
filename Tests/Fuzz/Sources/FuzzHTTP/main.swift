import CFuzzer
import Foundation
import FuzzSupport

// libFuzzer calls back with each input. With `DOWNPIPE_SCENARIOS` the process runs the scripted scenarios in place of the
// fuzzer, and with `DOWNPIPE_SEEDS` it writes the first inputs into that folder.
let environment = ProcessInfo.processInfo.environment
if let folder = environment["DOWNPIPE_SEEDS"] {
  exit(Seeds.write(to: URL(filePath: folder)) ? 0 : 1)
}
if environment["DOWNPIPE_SCENARIOS"] != nil {
  Waiting.run(within: .seconds(300), "the scenarios") { await Scenarios().runAll() }
  exit(0)
}
var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
exit(LLVMFuzzerRunDriver(&count, &arguments) { test($0, $1) })
