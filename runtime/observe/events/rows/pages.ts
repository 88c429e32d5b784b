/** Rows for events about the pages of MCP Apps. */
import type { EventFields } from '../fields.ts'
import type { EventTable } from '../row.ts'

function hasDriftedPages({ changed, new: added }: EventFields['pages_drifted']): boolean {
  return changed + added > 0
}

export const pageRows = {
  page_narrowed: {
    message: 'origins or permissions that are not allowed were removed from a page',
    level: 'info',
    repeats: ({ backend, page }) => `${backend} ${page}`,
  },
  pages_drifted: {
    message: (fields) =>
      hasDriftedPages(fields)
        ? 'pages of a backend differ from its lock'
        : fields.compared
          ? 'no known page of a backend differs from its lock'
          : 'pages of a backend are no longer compared with a lock',
    level: (fields) => (!hasDriftedPages(fields) ? 'info' : fields.quiet ? 'debug' : 'warn'),
    condition: (fields) => {
      const { backend, changed, new: added, examples } = fields
      return {
        id: `pages_drifted/${backend}`,
        backend,
        open: hasDriftedPages(fields)
          ? {
              message: `pages of backend ${backend} differ from its lock: ${changed} changed, ${added} new`,
              fix: `review the difference with gatehouse lock --check, then approve it in the MCPToolLock or report it to the operator of ${backend}: ${examples.slice(0, 2).join('; ')}`,
            }
          : undefined,
      }
    },
  },
} satisfies Partial<EventTable>
