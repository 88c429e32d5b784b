/** What of the settings of the console a running server reloads: hooks roll no pods for it, and nothing waits for a restart. */

interface ConsoleRoles {
  readonly roles?: unknown
  readonly authz?: unknown
}

/** The settings that hold from the next start on: all but who may see and do what. */
export function consoleStartSettings<T extends ConsoleRoles>(
  console: T | undefined,
): Omit<T, keyof ConsoleRoles> | undefined {
  if (!console) return undefined
  const { roles: _roles, authz: _authz, ...rest } = console
  return rest
}
