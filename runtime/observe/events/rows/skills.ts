/** Rows for events about skills. */
import type { EventTable } from '../row.ts'

export const skillRows = {
  skill_refused: {
    message: 'a skill is not offered',
    level: 'warn',
  },
  skill_names_equal: {
    message: 'several skills have the same name',
    level: 'warn',
  },
  skills_unread: {
    message: "a backend's skills could not be read",
    level: 'warn',
    repeats: ({ backend }) => backend,
  },
} satisfies Partial<EventTable>
