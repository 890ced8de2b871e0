/// The files of the page that shows a queue. They are in the program.
package enum PageFiles {
  /// What the page may do: it loads its own files, and talks to its own server. Nothing else can be made of it.
  package static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    + "form-action 'none'; frame-ancestors 'none'"

  /// Returns the type and the bytes of a file by its path; `nil` if there is none.
  package static func file(_ path: String) -> (type: String, bytes: [UInt8])? {
    switch path {
    case "/": ("text/html; charset=utf-8", PackageResources.index_html)
    case "/page.css": ("text/css; charset=utf-8", PackageResources.page_css)
    case "/page.js": (script, PackageResources.page_js)
    case "/link.js": (script, PackageResources.link_js)
    case "/lists.js": (script, PackageResources.lists_js)
    case "/add.js": (script, PackageResources.add_js)
    default: nil
    }
  }

  private static let script = "text/javascript; charset=utf-8"
}
