/**
 * Separates the console settings that a running server reloads from the settings that require a restart. Hooks do not
 * restart pods when only reloadable settings change.
 */

interface ConsoleRoles {
  readonly roles?: unknown
  readonly authz?: unknown
}

/** Returns the settings that require a restart: all except roles and policies. */
export function consoleStartSettings<T extends ConsoleRoles>(
  console: T | undefined,
): Omit<T, keyof ConsoleRoles> | undefined {
  if (!console) return undefined
  const { roles: _roles, authz: _authz, ...rest } = console
  return rest
}
