/** Renders the running configuration as text. The text contains no secrets, and no values that look like secrets. */
import { writeYaml } from '../../../schemas/yaml/index.ts'
import { isFields } from '../../../schemas/index.ts'
import { recordedPayload } from '../../observe/index.ts'
import type { ConfigView } from '../api.ts'
import type { ConsoleView } from '../view.ts'
import { given } from './pages.ts'

const maxBytes = 256 * 1024
const blank = '[redacted]'

export function configView(view: ConsoleView): ConfigView {
  return {
    effective: textOf(view.config()),
    problems: view.problems().map(({ type, backend, message, fix }) => ({
      ...given('path', backend === undefined ? undefined : `backends.${backend}`),
      code: type,
      message,
      fix,
    })),
  }
}

/** Returns YAML. Parts that exceed the size limit remain JSON. */
function textOf(config: unknown): string {
  const redacted = recordedPayload(JSON.stringify(config, withoutLiterals), { whole: true }, maxBytes)
  if (!redacted) return ''
  const value: unknown = JSON.parse(redacted.json)
  return typeof value === 'string' ? value : writeYaml(value)
}

/** Removes header values, which may be credentials regardless of the header's name. */
function withoutLiterals(key: string, value: unknown): unknown {
  if (key === 'headerValue' && value !== undefined) return blank
  if (key !== 'headers' || !isFields(value)) return value
  return Object.fromEntries(Object.keys(value).map((name) => [name, blank]))
}
