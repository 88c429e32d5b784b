import { hiddenInText } from '../../../schemas/index.ts'

/** Builds a JUnit XML report. `cases` contains XML lines, one per test case. */
export function junitReport(suite: string, cases: readonly string[], failures: number, skipped = 0): string {
  const counts = `tests="${cases.length}" failures="${failures}"`
  const left = skipped > 0 ? ` skipped="${skipped}"` : ''
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${suite}" ${counts}${left}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
  ].join('\n')
}

/** Escapes markup and hidden characters for XML 1.0, and replaces characters that XML cannot contain. */
export function xml(text: string): string {
  const named: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replace(/[&<>"]/g, (char) => named[char] ?? char)
    .replaceAll(hiddenInText, (char) => `&#x${(char.codePointAt(0) ?? 0).toString(16)};`)
}
