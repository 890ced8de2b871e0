import ArgumentParser
import Downpipe

/// When downloads may run.
struct GateOptions: ParsableArguments {
  @Flag(
    help: ArgumentHelp(
      "Download over Wi-Fi only, and wait while the route leads over Ethernet or a mobile network.",
      discussion: "It applies to all downloads of the command. VPNs and virtual interfaces are not held."))
  var wifiOnly = false

  @Option(
    help: ArgumentHelp(
      "Download during this part of each day only, in the local time zone, such as 22:00-06:00.",
      valueName: "HH:MM-HH:MM"))
  var window: GateSettings.Window?

  @Option(
    help: ArgumentHelp(
      "Keep this much free on the disk of the folder, and wait while less is free, such as 500M or 2G (1024-based).",
      discussion:
        "Without it, a file of known size is not begun unless an eighth of it (at least 1M, at most 64M) stays "
        + "free; with 0, it only has to fit.",
      valueName: "bytes"))
  var minFree: ByteSize?

  var settings: GateSettings { GateSettings(wifiOnly: wifiOnly, window: window, minFree: minFree?.bytes) }
}
