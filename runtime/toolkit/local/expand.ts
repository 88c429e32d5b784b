/**
 * Expands a value, command word or argument of a container as the kubelet does: `$(NAME)` stands for a variable, `$$` for
 * `$`; an unknown name and everything else stays as it is.
 * Source: Kubernetes core/v1, EnvVar.value, Container.command and args.
 */
export function expand(text: string, known: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$(?:(\$)|\(([^)]*)\))/g, (whole, escaped: string | undefined, name: string) => {
    if (escaped !== undefined) return '$'
    return Object.hasOwn(known, name) ? (known[name] ?? whole) : whole
  })
}
