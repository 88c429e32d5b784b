/** The pages, and the permissions required to see them. */
import type { Me, Permission } from '../../api.ts'

export const pageNames = [
  'overview',
  'tools',
  'pins',
  'calls',
  'sessions',
  'tasks',
  'policies',
  'accounts',
  'config',
  'connect',
] as const
export type PageName = (typeof pageNames)[number]

/** Permissions, of which the user needs at least one. The list is empty for a page that all users can see. */
const needs: Readonly<Record<PageName, readonly Permission[]>> = {
  overview: ['overview'],
  tools: ['tools'],
  pins: ['overview'],
  calls: ['calls.own', 'calls.all'],
  sessions: [],
  tasks: [],
  policies: ['policies', 'explain'],
  accounts: [],
  config: ['config'],
  connect: [],
}

export function may(me: Me, permission: Permission): boolean {
  return me.permissions.includes(permission)
}

export function maySee(me: Me, page: PageName): boolean {
  const needed = needs[page]
  if (page === 'accounts' && me.anonymous) return false
  return needed.length === 0 || needed.some((one) => may(me, one))
}

export function isPage(name: string): name is PageName {
  return (pageNames as readonly string[]).includes(name)
}
