import Foundation

/// Asks for a password on the terminal of the process, which may be another one than standard input.
enum PasswordPrompt {
  /// - Returns: `nil` where there is no terminal.
  /// - Throws: ``UsageError`` when the user gives up.
  static func ask(_ prompt: String) throws(UsageError) -> String? {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    var settings = termios()
    guard tcgetattr(terminal, &settings) == 0 else { return nil }
    let before = settings
    // Each key comes at once and is not shown. Signals would leave the terminal like that: Control-C is a key here.
    settings.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
    guard tcsetattr(terminal, TCSAFLUSH, &settings) == 0 else { return nil }
    defer {
      var before = before
      tcsetattr(terminal, TCSAFLUSH, &before)
      show("\n", on: terminal)
    }
    show(prompt, on: terminal)
    var typed: [UInt8] = []
    while true {
      var key: UInt8 = 0
      guard read(terminal, &key, 1) == 1 else { throw UsageError("no password was typed") }
      switch key {
      case 0x0A, 0x0D: return String(decoding: typed, as: UTF8.self)
      case 0x03, 0x04: throw UsageError("no password was typed")
      case 0x15: typed = []
      case 0x08, 0x7F:
        // A character of UTF-8 has several bytes.
        while let last = typed.popLast(), last & 0xC0 == 0x80 {}
      default: typed.append(key)
      }
    }
  }

  private static func show(_ text: String, on terminal: Int32) {
    let bytes = Array(text.utf8)
    _ = write(terminal, bytes, bytes.count)
  }
}
