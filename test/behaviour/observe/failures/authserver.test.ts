/** Causes each failure on a running server. Five views must report it alike. */
import t from 'tap'
import { authServerFailures } from '../../../helpers/failures/authserver.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, authServerFailures)
