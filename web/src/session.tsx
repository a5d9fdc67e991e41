import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useState, type ReactNode } from "react";
import { answer, api, setCsrf, whenSignedOut, type Me } from "./api/client";
import { problemFrom } from "./api/problem";
import { LogIn } from "./pages/LogIn";
import { Failure } from "./ui/Failure";

const Who = createContext<Me | null>(null);

/** Who is logged in; null is nobody. Asked for before the page's own script has come. */
export const WHO = {
  queryKey: ["me"],
  queryFn: async (): Promise<Me | null> => {
    try {
      const found = await answer(api.GET("/api/v1/me"));
      setCsrf(found.csrf_token);
      return found;
    } catch (error) {
      if (problemFrom(error).status === 401) return null;
      throw error;
    }
  },
};

export function useMe(): Me {
  const me = useContext(Who);
  if (me === null) throw new Error("this part of the page needs a log-in");
  return me;
}

/** Of every amount on this server. */
export function useCurrency(): string {
  return useMe().currency ?? "";
}

/** The log-in, or what is behind it. A session that ends anywhere brings the log-in back, with the address kept. */
export function Session({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [ended, setEnded] = useState(false);
  // Another tab may have logged in as somebody else: ask again whenever this one is looked at.
  const me = useQuery({ ...WHO, refetchOnWindowFocus: "always" });

  useEffect(() => {
    whenSignedOut(() => {
      if (queries.getQueryData(["me"])) setEnded(true);
      queries.setQueryData(["me"], null);
    });
  }, [queries]);

  const user = me.data?.user.id;
  useEffect(() => {
    if (user !== undefined) return () => queries.removeQueries({ predicate: (q) => q.queryKey[0] !== "me" });
  }, [user, queries]);

  if (me.data) return <Who.Provider value={me.data}>{children}</Who.Provider>;
  if (me.data === null)
    return (
      <LogIn
        ended={ended}
        onLogIn={(found) => {
          setCsrf(found.csrf_token);
          setEnded(false);
          queries.setQueryData(["me"], found);
        }}
      />
    );
  return (
    <main className="alone">
      {me.error ? (
        <Failure error={me.error} again={() => void me.refetch()} />
      ) : (
        <p role="status">Loading…</p>
      )}
    </main>
  );
}
