/** Runs guardrails without a server, for tests. */
import { atOnce } from '../../../../runtime/mcp/index.ts'
import type { Searched } from '../../../../runtime/vmcp/features/guardrails/find/search.ts'
import { scanValue, type ScanResult } from '../../../../runtime/vmcp/features/guardrails/scan/scan-value.ts'
import {
  type ActiveRule,
  compileRules,
  rulesFor,
} from '../../../../runtime/vmcp/features/guardrails/rules.ts'
import type { ScanOptions } from '../../../../runtime/vmcp/features/guardrails/scan/json-scan.ts'
import { vmcpConfig } from '../vmcp.ts'

/** Returns the matches of a search in a text that arrives in pieces of `piece` characters. */
export function foundIn(searched: Searched, text: string, piece = text.length): string[] {
  const search = searched()
  search.begin()
  for (let from = 0; from < text.length; from += piece) {
    search.push(text.slice(from, from + piece), from + piece >= text.length)
    while (search.advance(50) >= 50);
  }
  const found: string[] = []
  for (let i = 0; i < search.spans.length; i += 2)
    found.push(text.slice(search.spans[i], search.spans[i + 1]))
  return found
}

/** Returns the rules for results of the tool `echo` of the backend `fixture`. */
export function resultRules(...redact: readonly Record<string, unknown>[]): readonly ActiveRule[] {
  const named = redact.map((rule, i) => ({ name: `rule${i}`, ...rule }))
  const { redact: rules = [] } = vmcpConfig({}, { guardrails: { redact: named } }).guardrails ?? {}
  return rulesFor(compileRules(rules), 'results', {
    method: 'tools/call',
    backend: 'fixture',
    original: 'echo',
  })
}

/** Checks JSON text synchronously. */
export function scanned(json: string, rules: readonly ActiveRule[], options: ScanOptions = {}): ScanResult {
  return atOnce(scanValue(Buffer.from(json), rules, options, undefined))
}
