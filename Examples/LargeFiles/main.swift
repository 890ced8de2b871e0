// Large files with settings that change while they are transferred: swift run LargeFiles
import DownpipeTesting
import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.count == 3, arguments[0] == "transfer" {
  // The second process, which is killed.
  try await OtherProcess.main(root: arguments[1], file: arguments[2])
} else {
  let folder = try TemporaryFolder()
  var show = try await Demonstration(folder.path)
  try await show.add()
  try await show.changeTheNumber()
  try await show.allowCellular()
  try await show.loseTheNetwork()
  try await show.kill()
  try await show.finish()
  await show.end()
  folder.close()
}
