import CPageFiles

/// The files of the page that shows a queue. They are in the program.
package enum PageFiles {
  /// What the page may do: it loads its own files, and talks to its own server. Nothing else can be made of it.
  package static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    + "form-action 'none'; frame-ancestors 'none'"

  /// Returns the type and the bytes of a file by its path; `nil` if there is none.
  package static func file(_ path: String) -> (type: String, bytes: [UInt8])? {
    switch path {
    case "/": ("text/html; charset=utf-8", bytes("index.html"))
    case "/page.css": ("text/css; charset=utf-8", bytes("page.css"))
    case "/page.js": (script, bytes("page.js"))
    case "/link.js": (script, bytes("link.js"))
    case "/lists.js": (script, bytes("lists.js"))
    case "/add.js": (script, bytes("add.js"))
    default: nil
    }
  }

  private static let script = "text/javascript; charset=utf-8"

  private static func bytes(_ name: String) -> [UInt8] {
    var size: UInt = 0
    let start = downpipe_page_file(name, &size)
    return Array(UnsafeBufferPointer(start: start, count: Int(size)))
  }
}
