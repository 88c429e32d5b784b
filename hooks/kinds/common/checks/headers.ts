/**
 * Headers added to every request: none may be set twice. Restricted names are the schema's business.
 */
import type { HeaderForwardConfig, Violation } from '../../../../schemas/index.ts'

/** Errors of headers that are given more than once, in whatever case. */
export function headerForwardViolations(config: HeaderForwardConfig | undefined, path: string): Violation[] {
  const violations: Violation[] = []
  const seen = new Map<string, string>()
  const take = (name: string, where: string) => {
    const other = seen.get(name.toLowerCase())
    if (other === undefined) seen.set(name.toLowerCase(), where)
    else violations.push({ path: where, message: `sets the same header as ${other}` })
  }
  for (const name of Object.keys(config?.addPlaintextHeaders ?? {}).sort()) {
    take(name, `${path}.addPlaintextHeaders[${JSON.stringify(name.slice(0, 80))}]`)
  }
  for (const [index, { headerName }] of (config?.addHeadersFromSecret ?? []).entries()) {
    take(headerName, `${path}.addHeadersFromSecret[${index}].headerName`)
  }
  return violations
}
