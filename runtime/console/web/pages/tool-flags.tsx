/** A tool's flags, shown in the list of tools and on the tool's page. */
import type { Tool } from '../../api.ts'
import { Mark } from '../parts/marks.tsx'
import { Foreign } from '../parts/text.tsx'
import { texts } from '../texts.ts'

/** Shows why the tool is hidden, and whether its texts contain hidden characters. */
export function Flags({ tool }: { readonly tool: Tool }) {
  return (
    <>
      {tool.hidden === undefined ? undefined : (
        <span class="flag">
          <Mark shape="barred" tone="warn" word={texts.tools.hidden} />{' '}
          <Foreign text={tool.hidden} most={300} />
        </span>
      )}
      {tool.suspicious ? (
        <span class="flag" title={texts.text.suspiciousWhy}>
          <Mark shape="triangle" tone="warn" word={texts.text.suspicious} />
        </span>
      ) : undefined}
    </>
  )
}

export function hintsOf(hints: Tool['hints']): string {
  const { readOnly, destructive, idempotent, openWorld } = hints
  return [
    readOnly === true ? texts.tools.readOnly : '',
    destructive === true ? texts.tools.destructive : '',
    idempotent === true ? texts.tools.idempotent : '',
    openWorld === true ? texts.tools.openWorld : '',
  ]
    .filter(Boolean)
    .join(', ')
}
