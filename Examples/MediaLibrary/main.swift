// Media of two users: swift run MediaLibrary
import DownpipeTesting

let folder = try TemporaryFolder()
let show = try await Demonstration(folder.path)
try await show.add()
try await show.logIn()
try await show.logOut()
try await show.pauseAndStart()
try await show.otherUser()
try await show.discretionary()
try await show.deleteAll()
await show.end()
folder.close()
