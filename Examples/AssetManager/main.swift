// Assets of an app, by intent and priority: swift run AssetManager
import DownpipeTesting

let folder = try TemporaryFolder()
let show = try await Demonstration(folder.path)
try await show.overTheMobileNetwork()
try await show.tap()
try await show.wifiIsBack()
try await show.again()
try await show.failures()
try await show.moves()
await show.end()
folder.close()
