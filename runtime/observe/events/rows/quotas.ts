import type { EventTable } from '../row.ts'
import { checkRedis } from '../words.ts'

export const quotaRows = {
  quota_exceeded: {
    message: ({ enforced }) =>
      enforced ? 'a quota refused a call' : 'a call exceeded a quota that only warns, and was allowed',
    level: 'info',
    repeats: ({ quota, enforced }) => `${quota} ${enforced}`,
  },
  quota_level: {
    message: ({ after }) => {
      if (after === 'below') return 'a quota is no longer used up'
      return after === 'near' ? 'a quota is at 80 % or more' : 'a quota is used up'
    },
    level: ({ after, blocks }) => (after === 'exhausted' && blocks ? 'warn' : 'info'),
    condition: ({ quota, per, after, until, blocks }) => ({
      id: `quota_level/${quota}`,
      open:
        after === 'below'
          ? undefined
          : {
              message: `quota ${quota} ${levelText(after, blocks)} ${whose(per)} until ${until}`,
              fix: `raise limit of ${quota} in quotas if this usage is expected; the audit log contains the calls, and under quotas those over the limit`,
            },
    }),
  },
  quota_store: {
    message: ({ up }) => (up ? 'quotas are enforced again' : 'quotas cannot be checked'),
    level: ({ up }) => (up ? 'info' : 'warn'),
    condition: ({ up }) => ({
      id: 'quota_store',
      open: up ? undefined : { message: 'quotas cannot be checked: calls are allowed', fix: checkRedis },
    }),
  },
  quota_memory_full: {
    message: 'no memory for budgets of further callers: they share one budget per quota',
    level: 'warn',
    repeats: () => '',
  },
  tool_unmatched: {
    message: ({ resolved }) =>
      resolved
        ? 'the settings no longer name this tool, or it is offered now'
        : 'settings name tools that no backend offers',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ problem, resolved }) => ({
      id: `tool_unmatched/${problem}`,
      open: resolved
        ? undefined
        : {
            message: problem,
            fix: "write the tool's name at its backend, not the name that clients see, or remove the setting",
          },
    }),
  },
  cost_unreadable: {
    message:
      'a backend reports an invalid cost, which must be a whole number of micro-units: the configured cost is used',
    level: 'warn',
  },
} satisfies Partial<EventTable>

function levelText(after: string, blocks: boolean): string {
  if (after === 'near') return 'is at 80 % or more'
  return blocks ? 'is used up, and calls are refused,' : 'is used up, and calls are still allowed,'
}

function whose(per: string): string {
  return per === 'server' ? 'for the whole server' : `for at least one ${per}`
}
