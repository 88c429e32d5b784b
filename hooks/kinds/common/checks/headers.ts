import type { HeaderForwardConfig, Violation } from '../../../../schemas/index.ts'

/** Reports headers that are set more than once, ignoring case. The schema rejects restricted names. */
export function headerForwardViolations(config: HeaderForwardConfig | undefined, path: string): Violation[] {
  const violations: Violation[] = []
  const seen = new Map<string, string>()
  const addHeader = (name: string, where: string) => {
    const other = seen.get(name.toLowerCase())
    if (other === undefined) seen.set(name.toLowerCase(), where)
    else violations.push({ path: where, message: `sets the same header as ${other}` })
  }
  for (const name of Object.keys(config?.addPlaintextHeaders ?? {}).sort()) {
    addHeader(name, `${path}.addPlaintextHeaders[${JSON.stringify(name.slice(0, 80))}]`)
  }
  for (const [index, { headerName }] of (config?.addHeadersFromSecret ?? []).entries()) {
    addHeader(headerName, `${path}.addHeadersFromSecret[${index}].headerName`)
  }
  return violations
}
