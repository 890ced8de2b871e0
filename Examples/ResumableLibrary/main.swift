// A library of films whose downloads survive interruptions: swift run ResumableLibrary
import DownpipeTesting

let arguments = Array(CommandLine.arguments.dropFirst())
if let film = OtherProcess.film(arguments) {
  // The second process, which is killed.
  try await OtherProcess.main(root: arguments[1], film: film)
} else {
  let folder = try TemporaryFolder()
  var show = try await Demonstration(folder.path)
  try await show.add()
  try await show.pause()
  try await show.loseTheNetwork()
  try await show.startByHand()
  try await show.kill()
  try await show.finish()
  try await show.takeOver()
  try await show.renameAndDelete()
  await show.end()
  folder.close()
}
